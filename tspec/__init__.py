"""tspec: rules for training jobs, recorded, drafted, reviewed and run.

In a training script: `with tspec.record("runs/a"):`, `tspec.step()`, `tspec.annotate(name=value)`.
"""

from typing import Any

__version__ = "0.1.0"


def step(number: int | None = None) -> None:
    """Mark the beginning of a training step, if it cannot be found automatically. Does nothing in a
    plain run.

    From the first call on, only these calls begin steps. `number` is the step's number.
    """
    from tspec.runtime.live.current import say_step  # imports torch

    say_step(number)


def annotate(**values: Any) -> None:
    """Say something that is known from now on, as context of rules: `tspec.annotate(task="sum")`."""
    from tspec.runtime.live.current import say

    say(values)


def __getattr__(name: str) -> Any:
    """`tspec.record` is imported when it is used."""
    if name == "record":
        import importlib

        return importlib.import_module("tspec.record")
    raise AttributeError(f"module 'tspec' has no attribute {name!r}")

"""After an evaluation the model stays in evaluation mode: nothing is dropped any more.

Source: the class of a loop that evaluates and does not call `train()` again.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,dropout"
FOUND = ("layers_with_dropout_are_trained_in_training_mode", 2, (0, 1), "")


def put_in() -> None:
    """The model is told to evaluate after its first update."""
    from tests.megatron import job

    original = job.Job.step

    def step(self: Any) -> Any:
        made = original(self)
        for chunk in self.chunks:
            chunk.eval()
        return made

    job.Job.step = step

"""A process of a checked job: it loads the hooks that its parent compiled."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tspec.runtime.checker import Checker
    from tspec.runtime.live import WatchSpec


def checker_of(hooks: Path, folder: Path) -> tuple[Checker, WatchSpec]:
    """The sink of a generated file, and what is to be watched for it."""
    spec = importlib.util.spec_from_file_location("tspec_hooks", hooks)
    if spec is None or spec.loader is None:
        raise OSError(f"{hooks} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.hooks(folder=folder), module.WATCH


def join(argument: str) -> None:
    """Check rules in a child of a checked process. `argument` is the path of what the parent left."""
    from tspec.runtime.live import Job
    from tspec.runtime.live.follow import Ending

    hooks, folder = pickle.loads(Path(argument).read_bytes())
    checker, watch = checker_of(Path(hooks), Path(folder))
    job = Job(watch, [checker])
    job.__enter__()
    Ending(job, checker.close).arm()

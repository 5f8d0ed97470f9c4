"""A process of a checked job: it loads the hooks that its parent compiled."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tspec.runtime.live.watch import WatchSpec

if TYPE_CHECKING:
    from tspec.runtime.checker import Checker
    from tspec.runtime.live import Job


def checker_of(hooks: Path, folder: Path) -> tuple[Checker, WatchSpec]:
    """The sink of a generated file, and what is to be watched for it."""
    spec = importlib.util.spec_from_file_location("tspec_hooks", hooks)
    if spec is None or spec.loader is None:
        raise OSError(f"{hooks} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.hooks(folder=folder), module.WATCH


@dataclass(frozen=True, slots=True)
class Recorded:
    """Where a checked job is recorded too, and what is watched for it."""

    out: Path
    watch: WatchSpec
    command: str


def followed(
    hooks: Path, folder: Path, recorded: Recorded | None
) -> tuple[Job, Callable[[], None]]:
    """A job that is checked, and recorded where that is wanted; and what closes its sinks."""
    from tspec.runtime.live import Job

    checker, watch = checker_of(hooks, folder)
    if recorded is None:
        return Job(watch, [checker]), checker.close
    from tspec.record.joined import joined
    from tspec.record.start import recorder_of

    watch = joined(watch, recorded.watch)
    recorder = recorder_of(recorded.out, watch, recorded.command)

    def close() -> None:
        recorder.close()
        checker.close()

    return Job(watch, [recorder, checker]), close


def join(argument: str) -> None:
    """Check rules in a child of a checked process. `argument` is the path of what the parent left."""
    from tspec.runtime.live.follow import Ending

    hooks, folder, recorded = pickle.loads(Path(argument).read_bytes())
    job, close = followed(Path(hooks), Path(folder), recorded)
    job.__enter__()
    Ending(job, close).arm()

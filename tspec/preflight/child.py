"""The process of a dry run: the script, unedited, as one rank of a process group without others."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn


def run(folder: Path, rank: int, world: int, tensors: str, command: tuple[str, ...]) -> int:
    """Run the script's first step and write its facts. Returns the script's own exit status.

    `folder` is where ranks leave their facts, and objects for one another. `tensors` are `fake` or `real`.
    """
    from tspec.preflight.facts import facts_file
    from tspec.preflight.fake_ranks import fake_ranks
    from tspec.preflight.fake_tensors import fake_tensors
    from tspec.preflight.objects import Objects
    from tspec.preflight.observer import WATCH, DryRunSink
    from tspec.runtime.live import LiveJob
    from tspec.runtime.live.follow import ProcessEnd
    from tspec.runtime.live.script import run_script
    from tspec.runtime.sources import Sources
    from tspec.targets.adapters import ADAPTERS
    from tspec.targets.torch.pipeline_stages import PipelineStageAdapter

    def ends(source: str) -> NoReturn:
        job.state.step_opens()  # it finds the models of optimizers, also if nothing called them yet
        observer.waits(source)

    observer = DryRunSink(facts_file(folder, rank), rank, world)
    elements = fake_tensors() if tensors == "fake" else nullcontext()
    adapters = (*ADAPTERS, PipelineStageAdapter())
    objects = Objects(folder, rank, ends)
    with fake_ranks(rank, world, objects), elements, observer.following():
        job = LiveJob(WATCH, [observer], Sources(Path.cwd()), adapters)
        ending = ProcessEnd(job, lambda: None)
        ending.arm()
        try:
            return run_script(command, job)
        finally:
            ending.disarm()


def main() -> NoReturn:
    """The arguments are the folder, a rank, the number of ranks, `fake` or `real`, and the command."""
    folder, rank, world, tensors, *command = sys.argv[1:]
    sys.exit(run(Path(folder), int(rank), int(world), tensors, tuple(command)))


if __name__ == "__main__":
    main()

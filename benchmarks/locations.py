"""What it costs that calls carry the line of the script: with it over without it (`--redact paths`), in turn.

Aim: at most 1.03, recording and running alike.
"""

import shutil
import statistics
import tempfile
from pathlib import Path

from jobs import JOBS, PACK, Job, ratios
from measure import TSPEC, Command, in_turn, paced

ROUNDS = 3
WITHOUT = ("--redact", "paths")


def ways(job: Job, folder: Path) -> dict[str, Command]:
    """The script recorded and run, each with locations and without."""
    recording = folder / "recording"

    def record(*options: str) -> Command:
        return Command(
            [*TSPEC, "record", *options, "-o", str(recording), "--", *job.script],
            before=lambda: shutil.rmtree(recording, ignore_errors=True),
        )

    def run(*options: str) -> Command:
        words = [*TSPEC, "run", str(PACK), *options, "--", *job.script]
        return Command(words, statuses=(0, 1))

    return {
        "record": record(),
        "record without": record(*WITHOUT),
        "run": run(),
        "run without": run(*WITHOUT),
    }


def main() -> None:
    """Print, for each job, what locations add to recording and to running."""
    for job in JOBS:
        with tempfile.TemporaryDirectory() as folder:
            costs = in_turn(ways(job, Path(folder)), ROUNDS, paced)
        print(f"  {job.name}, the loop alone, {ROUNDS} rounds:")
        for way in ("record", "run"):
            without = costs[f"{way} without"]
            seconds = statistics.median(cost.cpu for cost in without)
            _, cpu = ratios(costs[way], without)
            print(f"    {way:8} {cpu:5.3f} x of {seconds:.2f} s of CPU")


if __name__ == "__main__":
    main()

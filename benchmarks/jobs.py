"""What recording and running rules cost in a job, as ratios to the plain run of the same script.

Measured from the script's first printed line to its last, so that imports and the start do not count, all ways in
turn. Aims on the small GPT: recording at most 1.5; running the shipped packs and 50 drafts at most 1.10.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import CHARGPT, DIGITS, PYTHON, ROOT, TSPEC, Command, Cost, in_turn, once, paced

ROUNDS = 4
PACK = ROOT / "specs/essentials"


@dataclass(frozen=True, slots=True)
class Job:
    """A script with its arguments, and those of a shorter run to draft rules from."""

    name: str
    script: Sequence[str]
    short: Sequence[str]


JOBS = (
    Job("digits CNN", (str(DIGITS), "--epochs", "4"), ("--epochs", "1")),
    Job(
        "small GPT",
        (str(CHARGPT), "--steps", "60", "--layers", "4", "--width", "128"),
        ("--steps", "20"),
    ),
)


def ways(job: Job, folder: Path, drafts: Path) -> dict[str, Command]:
    """The same script plain, recorded, and with rules."""
    recording = folder / "recording"
    return {
        "plain": Command([PYTHON, *job.script]),
        "record": Command(
            [*TSPEC, "record", "-o", str(recording), "--", *job.script],
            before=lambda: shutil.rmtree(recording, ignore_errors=True),
        ),
        "run the pack": Command([*TSPEC, "run", str(PACK), "--", *job.script], statuses=(0, 1)),
        "run pack and drafts": Command(
            [*TSPEC, "run", str(PACK), str(drafts), "--", *job.script], statuses=(0, 1)
        ),
    }


def infer_drafts(job: Job, folder: Path) -> Path:
    """Drafts from one recording of a short run."""
    recording, drafts = folder / "good", folder / "drafts.tspec"
    once(Command([*TSPEC, "record", "-o", str(recording), "--", *job.script, *job.short]))
    once(Command([*TSPEC, "infer", str(recording), "-o", str(drafts)]))
    return drafts


def ratios(costs: Sequence[Cost], plain: Sequence[Cost]) -> tuple[float, float]:
    """Wall and CPU time over those of the plain run, the best of all rounds: what else the machine does only adds to them."""
    return (
        min(way.wall for way in costs) / min(base.wall for base in plain),
        min(way.cpu for way in costs) / min(base.cpu for base in plain),
    )


def main() -> None:
    """Print, for each job and way, what it takes over the plain run."""
    for job in JOBS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            drafts = infer_drafts(job, folder)
            count = drafts.read_text().count("draft invariant")
            costs = in_turn(ways(job, folder, drafts), ROUNDS, paced)
        plain = costs.pop("plain")
        seconds = min(cost.cpu for cost in plain)
        print(f"  {job.name}: {seconds:.2f} s of CPU in the loop of the plain run; {count} drafts")
        for way, of in costs.items():
            wall, cpu = ratios(of, plain)
            print(f"    {way:20} {cpu:5.2f} x of CPU  {wall:5.2f} x of time")


if __name__ == "__main__":
    main()

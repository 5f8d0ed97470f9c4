"""What recording and running rules cost in a job, as ratios to the plain run of the same script.

Each job is run at two lengths, all ways in turn: the difference between the two is the cost of the steps alone,
without imports and the start of the process. Aims on the small GPT: recording <= 1.5; running the shipped packs
and 50 drafts <= 1.10.
"""

import shutil
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import CHARGPT, DIGITS, PYTHON, ROOT, TSPEC, Command, Cost, in_turn, once

ROUNDS = 3
PACKS = ROOT / "specs"


@dataclass(frozen=True, slots=True)
class Job:
    """A script with the arguments of a short run and of a long one."""

    name: str
    short: Sequence[str]
    long: Sequence[str]


JOBS = (
    Job("digits CNN", (str(DIGITS), "--epochs", "1"), (str(DIGITS), "--epochs", "5")),
    Job("small GPT", (str(CHARGPT), "--steps", "20"), (str(CHARGPT), "--steps", "120")),
)


def ways(script: Sequence[str], folder: Path, drafts: Path) -> dict[str, Command]:
    """The same script plain, recorded, and with rules."""
    recording = folder / "recording"
    specs = [str(PACKS), str(drafts)]
    return {
        "plain": Command([PYTHON, *script]),
        "record": Command(
            [*TSPEC, "record", "-o", str(recording), "--", *script],
            before=lambda: shutil.rmtree(recording, ignore_errors=True),
        ),
        "run": Command([*TSPEC, "run", *specs, "--", *script], statuses=(0, 1)),
    }


def steps_alone(short: Sequence[Cost], long: Sequence[Cost]) -> float:
    """Seconds of the steps by which the long run is longer, the median over the rounds."""
    return statistics.median(b.wall - a.wall for a, b in zip(short, long, strict=True))


def infer_drafts(job: Job, folder: Path) -> Path:
    """Drafts from one recording of the job's short run."""
    recording, drafts = folder / "good", folder / "drafts.tspec"
    once(Command([*TSPEC, "record", "-o", str(recording), "--", *job.short]))
    once(Command([*TSPEC, "infer", str(recording), "-o", str(drafts)]))
    return drafts


def main() -> None:
    """Print, for each job and way, the ratio of whole processes and of the steps alone."""
    for job in JOBS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            drafts = infer_drafts(job, folder)
            count = drafts.read_text().count("draft invariant")
            short = in_turn(ways(job.short, folder, drafts), ROUNDS)
            long = in_turn(ways(job.long, folder, drafts), ROUNDS)
        plain_steps = steps_alone(short["plain"], long["plain"])
        plain_all = statistics.median(c.wall for c in long["plain"])
        print(
            f"  {job.name}: plain {plain_all:.1f} s, of which steps {plain_steps:.1f} s; {count} drafts"
        )
        for way in ("record", "run"):
            steps = steps_alone(short[way], long[way]) / plain_steps
            whole = statistics.median(c.wall for c in long[way]) / plain_all
            print(f"    {way:8} steps {steps:5.2f} x   whole process {whole:5.2f} x")


if __name__ == "__main__":
    main()

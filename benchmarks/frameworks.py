"""What recording and running the essentials cost in real Trainer and Lightning jobs, as ratios to the plain run.

Each job runs small (two layers of width 64) and with some 50 million parameters, all ways in turn. The first twenty
steps, of which some rules look at each, and those after them are measured apart. Aims: running at most 1.5 on the small
jobs, at most 1.05 on the large ones.
"""

import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jobs import ratios
from measure import PYTHON, ROOT, TSPEC, Command, in_turn, marks

PACK = ROOT / "specs/essentials"
FRAMEWORKS = {"Trainer": "trainer.py", "Lightning": "lit.py"}
SIZES = {
    "small": ("--width", "64", "--layers", "2", "--steps", "120"),
    "50M parameters": ("--width", "512", "--layers", "16", "--steps", "51"),
}
ROUNDS = {"small": 3, "50M parameters": 1}
DENSE = 20
"""Steps at the start that some rules look at one by one."""


def ways(script: Sequence[str], recording: Path) -> dict[str, Command]:
    """The same script plain, recorded, and with the essentials, of which none may fire."""
    return {
        "plain": Command([PYTHON, *script]),
        "record": Command(
            [*TSPEC, "record", "-o", str(recording), "--", *script],
            before=lambda: shutil.rmtree(recording, ignore_errors=True),
        ),
        "run the pack": Command([*TSPEC, "run", str(PACK), "--fail-on", "warning", "--", *script]),
    }


def main() -> None:
    """Print, for each framework and size, what recording and running take over the plain run."""
    for framework, name in FRAMEWORKS.items():
        for size, options in SIZES.items():
            script = (str(Path(__file__).parent / "jobs" / name), *options)
            with tempfile.TemporaryDirectory() as folder:
                read = in_turn(ways(script, Path(folder, "recording")), ROUNDS[size], marks)
            spans = {f"steps 1 to {DENSE}": (0, DENSE - 1), "later": (DENSE - 1, -1)}
            seconds = statistics.median(each[-1].cpu - each[0].cpu for each in read["plain"])
            print(f"  {framework}, {size}: {seconds:.2f} s of CPU in the steps of the plain run")
            for way in list(read)[1:]:
                for span, (begin, end) in spans.items():
                    of, plain = ([m[end] - m[begin] for m in read[w]] for w in (way, "plain"))
                    wall, cpu = ratios(of, plain)
                    print(
                        f"    {way + ', ' + span:27} {cpu:5.2f} x of CPU  {wall:5.2f} x of time",
                        flush=True,
                    )


if __name__ == "__main__":
    main()

"""What recording and running the essentials cost in real Trainer and Lightning jobs, as ratios to the plain run.

Each job runs small (two layers of width 64) and with some 50 million parameters, all ways in turn; measured from the
first step's line to the last's. Aims: running at most 1.5 on the small jobs, at most 1.05 on the large ones.
"""

import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jobs import ratios
from measure import PYTHON, ROOT, TSPEC, Command, in_turn, paced

PACK = ROOT / "specs/essentials"
FRAMEWORKS = {"Trainer": "trainer.py", "Lightning": "lit.py"}
SIZES = {
    "small": ("--width", "64", "--layers", "2", "--steps", "60"),
    "50M parameters": ("--width", "512", "--layers", "16", "--steps", "21"),
}
ROUNDS = {"small": 3, "50M parameters": 1}


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
                costs = in_turn(ways(script, Path(folder, "recording")), ROUNDS[size], paced)
            plain = costs.pop("plain")
            seconds = statistics.median(cost.cpu for cost in plain)
            print(f"  {framework}, {size}: {seconds:.2f} s of CPU in the steps of the plain run")
            for way, of in costs.items():
                wall, cpu = ratios(of, plain)
                print(f"    {way:20} {cpu:5.2f} x of CPU  {wall:5.2f} x of time", flush=True)


if __name__ == "__main__":
    main()

"""What the Megatron pack costs in jobs of megatron-core, as a ratio to the plain run of the same job.

Two ranks of tensor or of data parallelism, on CPU and gloo, in a GPT of 54 million parameters and in a tiny one. All
parameters are compared between their replicas every ten steps; ten steps in a row are measured, and thirty of the tiny
model. Steps of the tiny model take milliseconds and differ from run to run by a fifth, so both ways take turns five times there,
and the medians of the runs' means are compared. Aims: at most 1.05, at most 2 in the tiny model. The collectives of a step are counted.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from measure import PYTHON, ROOT, TSPEC, Command, once

TRAIN = str(ROOT / "tests/megatron/train.py")
PACK = str(ROOT / "specs/megatron")
FIRST = 3
"""Steps that are not measured: some rules look at each of them."""
ROUNDS = 5
"""Turns of both ways on the tiny model."""
LARGE, TINY = "hidden=1024,vocabulary=20000,sequence=64,steps=13", "steps=33"
JOBS = {
    "54 million parameters, tp=2": f"tp=2,{LARGE}",
    "54 million parameters, dp=2": f"dp=2,{LARGE}",
    "tiny, tp=2": f"tp=2,{TINY}",
    "tiny, dp=2": f"dp=2,{TINY}",
}


def steps(start: list[str], layout: str) -> list[dict[str, float]]:
    """What the measured steps of a job cost its first rank."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "costs.json")
        once(Command([*start, TRAIN, layout, "--measure", str(path)]))
        found: list[dict[str, float]] = json.loads(path.read_text())
    return found[FIRST:]


def mean(steps: list[dict[str, float]], what: str) -> float:
    """One cost, of a step."""
    return sum(step[what] for step in steps) / len(steps)


def main() -> None:
    """Print a line for each job; arguments choose those whose names hold one of them, such as `tiny`."""
    for name, layout in JOBS.items():
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        rounds = [
            (steps([PYTHON], layout), steps([*TSPEC, "run", PACK, "--"], layout))
            for _ in range(ROUNDS if layout.endswith(TINY) else 1)
        ]
        before, after = (
            statistics.median(mean(each, "seconds") for each in ways)
            for ways in zip(*rounds, strict=True)
        )
        plain, ruled = rounds[-1]
        print(
            f"  {name}: {before:.3f} s a step plain, {after:.3f} s with the pack: {after / before:.2f} times;"
            f" collectives a step: {mean(plain, 'job'):.0f} plain, {mean(ruled, 'job'):.0f}"
            f" and {mean(ruled, 'tspec'):.1f} of tspec's own",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Compares jobs of `states.py` with one rank, clean and with faults in the optimizer's state, and prints the first wrong tensor of each.

    python -m tests.equivalence.states_jobs [NUMBER ...]

Numbers choose jobs. torch is imported once, and not in each rank.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch._dynamo  # noqa: F401 - optimizers import it

import tspec.runtime.live.job  # noqa: F401 - before ranks are forked
from tests.equivalence.forked import forked
from tspec.equivalence.check import Outcome, Reference, compare, run_candidate, run_reference
from tspec.equivalence.sides import Trial, trial_of
from tspec.resolve import load

HERE = Path(__file__).resolve().parent
BFLOAT16, SGD, NEW = ("--dtype", "bfloat16"), ("--optimizer", "sgd"), ("--new",)
JOBS: tuple[tuple[tuple[str, ...], str, bool], ...] = (
    (BFLOAT16, "", False),
    (NEW, "beta2", False),
    ((), "", False),
    ((), "reset", False),
    ((), "not_restored", False),
    ((), "", True),
    ((), "reset", True),
    (BFLOAT16, "reset", False),
    ((*NEW, *BFLOAT16), "beta2", False),
    (SGD, "", False),
    ((*SGD, *BFLOAT16), "reset", False),
)
"""Options of the script, the fault of its last rank, and whether the job is judged from sketches."""


def trial(options: tuple[str, ...], fault: str, sketched: bool) -> Trial:
    """The equivalence of a job, of two steps."""
    program = load([HERE / "states.tspec"]).program
    assert program is not None
    [declaration] = program.equivalences
    found = trial_of(declaration, (str(HERE / "states.py"), *options, "--fault", fault))
    return replace(found, sketched=sketched)


def judged(number: int, references: dict[object, Reference], folder: Path) -> Outcome:
    """What is found of a job; `references` are those that were run before."""
    options, fault, sketched = JOBS[number]
    asked = trial(options, fault, sketched)
    if (options, sketched) not in references:
        clean = trial(options, "", sketched)
        references[options, sketched] = run_reference(clean, folder, forked)
    reference = references[options, sketched]
    return compare(
        asked, reference, run_candidate(asked, reference.recording, folder, start=forked)
    )


def main() -> None:
    references: dict[object, Reference] = {}
    with tempfile.TemporaryDirectory() as name:
        for number in map(int, sys.argv[1:] or range(len(JOBS))):
            folder = Path(name, str(number))
            folder.mkdir()
            found = judged(number, references, folder)
            first = min((*found.faults, *found.wrong), key=lambda each: each.order, default=None)
            kinds = sorted({each.name.kind for each in (*found.faults, *found.wrong)})
            said = f"{first.name} of {', '.join(kinds)}" if first else "nothing"
            print(f"{number}: {said} in {len(found.comparisons)} tensors", flush=True)


if __name__ == "__main__":
    main()

"""Prints how many seconds it takes from the start of a check to its verdict, for each fault that is compared with one device.

    python -m tests.equivalence.seconds [TEXT ...]

A text chooses the faults whose name begins with it; those of Megatron begin with `megatron`. Each is a check as `tspec run
--equivalence` makes it: all processes start anew, the reference and its samples run first, then the candidate. Modules
are not judged alone, which takes another run. It is for a machine on which nothing else runs.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.equivalence.jobs import JOBS
from tests.equivalence.judged import NOTHING, first
from tests.equivalence.megatron_table import CASES, asked
from tspec.equivalence.check import compare
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.runs import run_candidate, run_reference
from tspec.equivalence.sides import Trial


def faults() -> Iterator[tuple[str, Trial]]:
    """Each job with a fault, by its name. The reference has none."""
    for job in JOBS:
        if not job.found.startswith(NOTHING):
            clean = job.trial("", sketched=False)
            faulty = job.trial(job.fault, sketched=False)
            yield job.name, replace(faulty, reference=clean.reference)
    for case in CASES:
        for precision in case.precisions:
            yield f"megatron {case.fault} {precision}", asked(case, precision)


def verdict(trial: Trial, folder: Path) -> Outcome:
    """What a check finds."""
    reference = run_reference(trial, folder)
    return compare(trial, reference, run_candidate(trial, reference.recording, folder))


def main() -> None:
    texts = tuple(sys.argv[1:]) or ("",)
    print("| fault | first wrong | seconds |\n|---|---|---|")
    for name, trial in faults():
        if not name.startswith(texts):
            continue
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            found = verdict(trial, Path(folder))
            took = time.perf_counter() - start
        print(f"| {name} | {first(found)} | {took:.1f} |", flush=True)


if __name__ == "__main__":
    main()

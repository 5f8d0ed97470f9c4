"""Compares clean jobs of megatron-core with references that are pipelines themselves, and prints a line for each.

    python -m tests.equivalence.megatron_references

The status is 1 if one differs.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.equivalence.forked import forked
from tests.equivalence.megatron_sweep import LLAMA, trial
from tests.megatron.cpu import run_on_cpu
from tspec.equivalence.check import Outcome, compare, run_candidate, run_reference
from tspec.equivalence.sides import Trial

PAIRS = (
    ("pp=2", "tp=2"),
    ("pp=2,virtual=2", "tp=2"),
    ("pp=2,virtual=2", "pp=2"),
    (f"pp=2,virtual=2,kv=2,untied,{LLAMA}", f"tp=2,sp,kv=2,untied,{LLAMA}"),
)
"""A reference, interleaved with `virtual`, and the job that is compared with it."""


def against(reference: str, candidate: str) -> Trial:
    """The equivalence of a job and of a pipeline."""
    pipeline = trial(reference)
    return replace(
        trial(candidate),
        reference_layout=pipeline.layout,
        reference_sizes=pipeline.sizes,
        reference=pipeline.candidate,
    )


def compared(asked: Trial) -> Outcome:
    """Both sides are run and compared."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reference = run_reference(asked, folder, forked)
        candidate = run_candidate(asked, reference.recording, folder, start=forked)
        return compare(asked, reference, candidate)


def main() -> int:
    """Print how many tensors were compared of each pair, and what is wrong."""
    run_on_cpu()
    differ = 0
    for reference, candidate in PAIRS:
        found = compared(against(reference, candidate))
        wrong = (*found.faults, *found.wrong)
        said = ", ".join(str(each.name) for each in wrong) or "none differs"
        print(f"{reference} : {candidate} : {len(found.comparisons)} : {said}", flush=True)
        differ += bool(wrong)
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Compares clean jobs of megatron-core with references that are pipelines themselves, and prints a line for each.

    python -m tests.equivalence.megatron_references

The status is 1 if one differs, or if a perturbed run of the pipeline computes something else than one on one device.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tests.equivalence.forked import forked
from tests.equivalence.megatron_sweep import LLAMA, trial
from tests.megatron.cpu import run_on_cpu
from tspec.equivalence.check import compare
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import TensorName
from tspec.equivalence.runs import run_candidate, run_reference
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


@dataclass(frozen=True, slots=True)
class Compared:
    """How a job compares with a pipeline, and what the pipeline's perturbed runs have otherwise than one device's."""

    outcome: Outcome
    perturbed: tuple[TensorName, ...]


def compared(asked: Trial, alone: Trial) -> Compared:
    """Both sides are run and compared, and the reference's noise with that on one device."""
    with tempfile.TemporaryDirectory() as name:
        folder, other = Path(name, "pipeline"), Path(name, "alone")
        folder.mkdir()
        other.mkdir()
        reference = run_reference(asked, folder, forked)
        candidate = run_candidate(asked, reference.recording, folder, start=forked)
        outcome = compare(asked, reference, candidate)
        whole = run_reference(alone, other, forked).samples
    perturbed = (
        of
        for mine, its in zip(reference.samples, whole, strict=True)
        for of in its.tensors
        if of.kind in ("inputs", "outputs") and of in mine.tensors
        if not torch.equal(mine.tensors[of], its.tensors[of])
    )
    return Compared(outcome, tuple(perturbed))


def main() -> int:
    """Print how many tensors were compared of each pair, and what is wrong."""
    run_on_cpu()
    differ = 0
    for reference, candidate in PAIRS:
        found = compared(against(reference, candidate), trial(candidate))
        outcome = found.outcome
        wrong = [each.name for each in (*outcome.faults, *outcome.wrong)]
        wrong += found.perturbed
        said = ", ".join(map(str, wrong)) or "none differs"
        print(f"{reference} : {candidate} : {len(outcome.comparisons)} : {said}", flush=True)
        differ += bool(wrong)
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())

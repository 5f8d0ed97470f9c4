"""megatron-core's tensor parallelism on two ranks against one: silent as released, and named with a bug in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tspec.equivalence.check import Outcome, compare, run_candidate, run_reference
from tspec.equivalence.sides import trial_of
from tspec.resolve import load

HERE = Path(__file__).resolve().parent
FIRST = "embedding.word_embeddings"
"""The bug takes away every sum of the forward pass; the embedding's comes first."""


def judged(folder: Path, *options: str) -> Outcome:
    program = load([HERE / "megatron.tspec"]).program
    assert program is not None
    [declaration] = program.equivalences
    script = str(HERE.parent / "megatron/train.py")
    trial = trial_of(declaration, (script, "tp={tp}", *options))
    reference = run_reference(trial, folder)
    return compare(trial, reference, run_candidate(trial, reference.recording, folder))


@pytest.mark.slow
@pytest.mark.gloo
def test_the_released_package_is_silent(tmp_path: Path) -> None:
    found = judged(tmp_path)
    assert (found.wrong, found.faults) == ((), ())
    assert len(found.comparisons) == 472


@pytest.mark.slow
@pytest.mark.gloo
def test_a_sum_that_is_left_out_is_named_where_it_is(tmp_path: Path) -> None:
    found = judged(tmp_path, "--bug=output_not_summed")
    assert found.first is not None
    assert (found.first.name.kind, found.first.name.name) == ("outputs", FIRST)
    assert "; the sum of the replicas is the reference" in found.faults[0].fault.message
    assert found.faults[0].name == found.first.name

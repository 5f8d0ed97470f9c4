"""A rank that makes no backward pass of a micro-batch records none of its gradients."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.equivalence.test_stages import INTERLEAVED, TEXT
from tests.equivalence.test_stages import trial as reading
from tspec.equivalence.check import compare
from tspec.equivalence.missing_passes import StagePass
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import Recording, TensorName
from tspec.equivalence.runs import ReferenceRecordings
from tspec.equivalence.sides import Trial

KINDS = ("outputs", "output_grads", "param_grads")


def trial(text: str) -> Trial:
    """Two stages against one rank."""
    text = text.replace(
        "  param ", '  grad "*": [hidden]\n  output_grad "*": [batch, hidden]\n  param '
    )
    sides = text.replace("candidate { pp: 1 }", "candidate { pp: 2 }")
    found = reading(sides.replace("reference {}", "reference { pp: 1 }"))
    return replace(found, kinds=KINDS)


def recording(*modules: str, microbatches: int = 2) -> Recording:
    """What a rank with these modules records in a step."""
    full = torch.ones(2, 4)
    passes = [
        TensorName(kind, module, 1, number + 1)
        for kind in ("outputs", "output_grads")
        for module in modules
        for number in range(microbatches)
    ]
    gradients = [TensorName("param_grads", f"{module}.weight", 1) for module in modules]
    return Recording(
        {name: full if name.microbatch else full[0] for name in (*passes, *gradients)}, {}
    )


def without(found: Recording, *lost: TensorName) -> Recording:
    return replace(
        found, tensors={of: each for of, each in found.tensors.items() if of not in lost}
    )


def gradient(module: str, microbatch: int) -> TensorName:
    return TensorName("output_grads", module, 1, microbatch)


def outcome(text: str, *ranks: Recording) -> Outcome:
    modules = ("a", "b", "c") if text == INTERLEAVED else ("a", "b")
    return compare(trial(text), ReferenceRecordings(recording(*modules), ()), ranks)


def test_a_rank_that_recorded_no_gradient_of_a_micro_batch_did_not_pass_it_back() -> None:
    found = outcome(TEXT, without(recording("a"), gradient("a", 2)), recording("b"))
    [lost] = found.missing_passes
    assert (lost.of, lost.ranks, lost.stages) == (StagePass(1, 2, 0, 0), (0,), 2)
    assert (lost.tensors, lost.parameters) == ({gradient("a", 2)}, {"a.weight"})
    assert found.blame == lost.blame
    assert lost.blame.part == "no backward pass of micro-batch 2 on rank 0 of stage 0"


def test_a_chunk_of_a_rank_has_passes_of_its_own() -> None:
    first = without(recording("a", "c"), gradient("c", 1))
    [lost] = outcome(INTERLEAVED, first, recording("b")).missing_passes
    assert (lost.of, lost.parameters) == (StagePass(1, 1, 0, 1), {"c.weight"})
    assert lost.blame.part == "no backward pass of micro-batch 1 on rank 0 of stage 0, chunk 1"


@pytest.mark.parametrize(
    "first",
    [
        recording("a"),
        without(recording("a"), gradient("a", 2), TensorName("outputs", "a", 1, 2)),
    ],
    ids=["made", "no_forward_pass"],
)
def test_a_pass_that_was_made_or_has_no_forward_pass_is_not_missing(first: Recording) -> None:
    assert outcome(TEXT, first, recording("b")).missing_passes == ()


def test_a_module_without_its_gradient_in_a_pass_that_was_made_is_not_a_missing_pass() -> None:
    text = TEXT.replace('stage 0: "a"', 'stage 0: "a", "c"')
    known = ReferenceRecordings(recording("a", "c", "b"), ())
    first = without(recording("a", "c"), gradient("a", 2))
    found = compare(trial(text), known, (first, recording("b")))
    assert [each.name for each in found.faults] == [gradient("a", 2)]
    assert found.missing_passes == ()

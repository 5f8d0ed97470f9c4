"""Gradients of inputs: replicas of an input may have summands of them, and an input may be another module's output on one side."""

from __future__ import annotations

import pytest
import torch

from tests.equivalence.trials import trial_of
from tspec.equivalence.check import compare
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import ModuleCall, ModuleInput, Recording, TensorName
from tspec.equivalence.runs import ReferenceRecordings
from tspec.resolve import load_text

TEXT = """edition 2026

module example

mesh ranks {
  order: tp
  tp: 2
}

dims ranks {
  hidden: 4
}

layout cut on ranks {
  input "fc": [batch, hidden] replicated tp
}

equivalence e {
  layout cut
  reference { tp: 1 }
  candidate { tp: 2 }
  run 1 step
  compare input_grads
  within rtol(1e-5)
}
"""
GRADIENT = TensorName("input_grads", "fc", 1, 1)
WHOLE = torch.arange(8.0).view(2, 4)
PART = torch.arange(8.0).view(2, 4).flip(1)


def compared(place: str, *ranks: Recording) -> Outcome:
    """Two ranks against one that has the whole gradient, with a place for it, or none."""
    text = TEXT.replace("replicated tp\n", f"replicated tp\n{place}", 1)
    program = load_text(text).program
    assert program is not None, load_text(text).diagnostics
    trial = trial_of(program.equivalences[0], ())
    return compare(trial, ReferenceRecordings(Recording({GRADIENT: WHOLE}, {}), ()), ranks)


@pytest.mark.parametrize(
    ("place", "first", "second", "wrong"),
    [
        ("", PART, WHOLE - PART, False),
        ("", WHOLE, WHOLE, False),
        ("", PART, WHOLE, True),
        ("", PART, PART, True),
        ('  input_grad "fc": [batch, hidden] partial tp\n', PART, WHOLE - PART, False),
        ('  input_grad "fc": [batch, hidden] partial tp\n', WHOLE, WHOLE, True),
        ('  input_grad "fc": [batch, hidden] replicated tp\n', PART, WHOLE - PART, True),
    ],
)
def test_ranks_may_have_summands_unless_the_layout_says_what_they_have(
    place: str, first: torch.Tensor, second: torch.Tensor, wrong: bool
) -> None:
    found = compared(place, *(Recording({GRADIENT: each}, {}) for each in (first, second)))
    assert bool(found.wrong or found.faults) == wrong


@pytest.mark.parametrize(("takes", "missing"), [((), 1), (("outputs", "norm"), 0)])
def test_the_gradient_of_another_modules_output_has_its_name(
    takes: tuple[str, str] | tuple[()], missing: int
) -> None:
    """One side may hand a copy to a module, and the other what it copies."""
    call = ModuleCall("Linear", "", "", "", (ModuleInput("fc", takes),))
    found = compared("", *(Recording({}, {}, {"fc": call}) for _ in range(2)))
    assert [each.fault.kind for each in found.faults] == ["missing"] * missing
    assert not found.comparisons


@pytest.mark.parametrize(
    ("kind", "said"),
    [("params", "had no gradient of it at the update"), ("inputs", "recorded no such tensor")],
)
def test_a_rank_that_has_a_parameter_and_no_gradient_of_it_is_told_so(kind: str, said: str) -> None:
    text = TEXT.replace("input_grads", "param_grads").replace('input "fc"', 'param "fc"')
    program = load_text(text.replace("[batch, hidden]", "[hidden, hidden]")).program
    assert program is not None
    trial = trial_of(program.equivalences[0], ())
    name, whole = TensorName("param_grads", "fc", 1), torch.ones(4, 4)
    rank = Recording({TensorName(kind, "fc", 1): whole}, {})
    reference = ReferenceRecordings(Recording({name: whole}, {}), ())
    [fault] = compare(trial, reference, (rank, rank)).faults
    assert (fault.fault.kind, fault.fault.message) == ("missing", f"ranks 0, 1 {said}")

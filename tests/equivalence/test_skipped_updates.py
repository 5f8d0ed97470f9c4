"""Updates that are skipped since gradients overflowed: by both sides, or by one side or rank alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.equivalence.trials import trial_of
from tspec.equivalence.check import compare
from tspec.equivalence.launch import Failed
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import Recording, SkippedUpdate, TensorName
from tspec.equivalence.runs import ReferenceRecordings
from tspec.equivalence.skipped_updates import refuse_the_brink
from tspec.equivalence.verdicts import Verdict
from tspec.report.equivalences.text import text
from tspec.report.equivalences.wording import not_compared, unchanged
from tspec.resolve import load_text

TEXT = """edition 2026

module example

mesh ranks {
  order: dp
  dp: 2
}

dims ranks {
  hidden: 2
}

layout copies on ranks replicated dp {
  param "fc.weight": [hidden]
  param "fc.bias": [hidden]
  output "fc": [hidden] replicated dp
}

equivalence e {
  layout copies
  reference { dp: 1 }
  candidate { dp: 2 }
  run 1 step
  compare outputs, output_grads, param_grads, params, states
  within 3 * noise()
}
"""
FINITE = torch.tensor([1.0, 2.0])
OUTPUT = TensorName("outputs", "fc", 1, 1)
BACK = TensorName("output_grads", "fc", 1, 1)
WEIGHT = TensorName("param_grads", "fc.weight", 1)
BIAS = TensorName("param_grads", "fc.bias", 1)
MOMENT = TensorName("states", "fc.weight.exp_avg", 1)
PARAMETER = TensorName("params", "fc.weight", 1)
MADE = Recording(dict.fromkeys((OUTPUT, BACK, WEIGHT, BIAS, MOMENT, PARAMETER), FINITE), {})
OVERFLOW = torch.tensor([torch.nan, torch.inf])
SKIPPED = replace(
    MADE,
    tensors={
        OUTPUT: FINITE, BACK: OVERFLOW, WEIGHT: OVERFLOW, BIAS: FINITE, PARAMETER: FINITE,
    },
    skipped=frozenset({SkippedUpdate(1)}),
)  # fmt: skip
"""The same, with a loss scale at which the gradient of the output not_compared."""


def judged(reference: Recording, *ranks: Recording) -> Verdict:
    program = load_text(TEXT).program
    assert program is not None, load_text(TEXT).diagnostics
    trial = trial_of(program.equivalences[0], ())
    return Verdict(trial, compare(trial, ReferenceRecordings(reference, (reference,)), ranks))


def found_of(reference: Recording, *ranks: Recording) -> Outcome:
    outcome = judged(reference, *ranks).outcome
    assert outcome is not None
    return outcome


def changed(recording: Recording, name: TensorName, tensor: torch.Tensor) -> Recording:
    return replace(recording, tensors={**recording.tensors, name: tensor})


def test_gradients_that_overflow_on_both_sides_are_listed_and_all_else_is_compared() -> None:
    verdict = judged(SKIPPED, SKIPPED, SKIPPED)
    found = verdict.outcome
    assert found is not None
    assert (found.wrong, found.faults) == ((), ())
    assert set(found.overflowed) == {BACK, WEIGHT}
    assert {each.name for each in found.comparisons} == {OUTPUT, BIAS, PARAMETER}
    said = "step 1: overflowed on both sides: 2 gradients not compared"
    assert list(not_compared(found)) == [said]
    assert said in text(verdict, 100)


def test_parameters_that_never_change_are_told() -> None:
    """As if `fully_shard` had replaced them after the optimizer was built, on both sides."""
    before = replace(PARAMETER, step=0)
    held = changed(MADE, before, FINITE)
    moved = changed(MADE, before, FINITE + 1)
    verdict = judged(held, held, held)
    said = "no parameter of the reference changed in 1 step: its optimizer may hold other tensors, or a learning rate of 0"
    assert verdict.outcome is not None
    assert list(unchanged(verdict.outcome)) == [said]
    assert said in " ".join(text(verdict, 100).split())
    assert list(unchanged(found_of(moved, moved, moved))) == []
    assert list(unchanged(found_of(MADE, MADE, MADE))) == []
    skipped = changed(SKIPPED, before, FINITE)
    assert found_of(skipped, skipped, skipped).steps_without_change == 0


@pytest.mark.parametrize("name", [OUTPUT, BIAS, PARAMETER], ids=lambda name: name.kind)
def test_what_is_finite_is_wrong_as_in_any_step(name: TensorName) -> None:
    wrong = changed(SKIPPED, name, 1.01 * FINITE)
    assert [each.name for each in found_of(SKIPPED, wrong, wrong).wrong] == [name]


def test_a_gradient_may_overflow_on_one_side_of_a_step_that_both_skip() -> None:
    """It is at the brink, and another one not_compared on both."""
    found = found_of(SKIPPED, *[changed(SKIPPED, BIAS, OVERFLOW)] * 2)
    assert (found.wrong, found.faults) == ((), ())
    assert set(found.overflowed) == {BACK, WEIGHT, BIAS}


@pytest.mark.parametrize(
    ("reference", "ranks", "message"),
    [
        (MADE, (SKIPPED, SKIPPED), "ranks 0, 1 skipped the update, and the reference made it"),
        (SKIPPED, (MADE, MADE), "ranks 0, 1 made the update, and the reference skipped it"),
        (
            *(MADE, (MADE, SKIPPED)),
            "rank 1 skipped the update, rank 0 made the update, and the reference made it",
        ),
    ],
)
def test_an_update_that_one_side_skips_is_a_finding_of_its_own(
    reference: Recording, ranks: tuple[Recording, ...], message: str
) -> None:
    verdict = judged(reference, *ranks)
    found = verdict.outcome
    assert found is not None
    [fault] = (each for each in found.faults if each.fault.kind == "skipped")
    assert (str(fault.name), fault.fault.message) == ("updates optimizer, step 1", message)
    assert not found.overflowed
    assert not any(each.fault.kind == "missing" for each in found.faults)  # the states
    assert f"updates optimizer, step 1: {message}" in text(verdict, 200)
    kinds = {each.name.kind for each in (*found.wrong, *found.faults)}
    assert kinds == {"updates", "output_grads", "param_grads"}


def test_parameters_that_are_gathered_after_the_last_step_are_listed() -> None:
    late = {name: each for name, each in MADE.tensors.items() if name != PARAMETER}
    rank = replace(MADE, tensors=late, ungathered=frozenset({PARAMETER}))
    found = found_of(MADE, rank, MADE)
    assert (found.wrong, found.faults) == ((), ())
    assert PARAMETER not in {each.name for each in found.comparisons}
    assert list(not_compared(found)) == [
        "step 1: 1 parameter gathered after the last step, not compared"
    ]


def test_gradients_that_are_not_finite_are_wrong_if_the_update_is_made() -> None:
    broken = changed(MADE, WEIGHT, OVERFLOW)
    assert [each.name for each in found_of(MADE, broken, broken).wrong] == [WEIGHT]


@pytest.mark.parametrize(
    ("update", "name", "holds"),
    [
        (SkippedUpdate(1), WEIGHT, True),
        (SkippedUpdate(1), BACK, True),
        (SkippedUpdate(2), BACK, False),
        (SkippedUpdate(1, 2), BACK, True),
        (SkippedUpdate(1, 2), replace(BACK, microbatch=3), False),
        (SkippedUpdate(1, 2), WEIGHT, False),
    ],
)
def test_a_step_of_torch_goes_on_after_a_skipped_update(
    update: SkippedUpdate, name: TensorName, holds: bool
) -> None:
    assert update.holds(name) is holds


def test_a_step_at_the_brink_of_overflow_is_refused() -> None:
    refuse_the_brink(SKIPPED, [SKIPPED])
    said = "step 1 is at the brink of overflow: its perturbed run 2 skipped its update, and the reference made it"
    with pytest.raises(Failed, match=said):
        refuse_the_brink(MADE, [MADE, SKIPPED])

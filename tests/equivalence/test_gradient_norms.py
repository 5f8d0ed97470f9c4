"""A reported norm is compared with the norm of the job's own gradients, each element once, by a tight tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, nan, sqrt

import pytest
import torch

from tests.equivalence.trials import trial_of
from tspec.equivalence.compare import Fault
from tspec.equivalence.gradient_norms import norm_comparisons
from tspec.equivalence.recording import GRADIENT_SQUARES, Recording, TensorName
from tspec.equivalence.sides import Trial
from tspec.resolve import load_text

TEXT = """edition 2026

module example

mesh ranks {
  order: tp
  tp: 2
}

dims ranks {
  words: 8
  width: 4
}

layout model on ranks {
  param "weight": [words / tp, width]
  param "norm": [width] replicated tp

  tied "weight" == "head"
}

equivalence e {
  layout model
  reference { tp: 1 }
  candidate { tp: 2 }
  run 1 step
  compare gradient_norms
  within 3 * noise()
}
"""
NORM = TensorName("gradient_norms", "norm", 1)
SHAPES = {"weight": (8, 4), "norm": (4,)}
WEIGHT, OF_NORM = 9.0, 7.0
"""Squares of the reference's gradients."""
WHOLE = sqrt(WEIGHT + OF_NORM)
SHARDS = ({"weight": 4.0, "norm": OF_NORM}, {"weight": 5.0, "norm": OF_NORM})


def trial(text: str = TEXT) -> Trial:
    program = load_text(text).program
    assert program is not None, load_text(text).diagnostics
    return trial_of(program.equivalences[0], ())


def recording(
    squares: Mapping[str, float], norm: float, dtype: torch.dtype = torch.float32
) -> Recording:
    """What a rank recorded of gradients with these squared norms, and of a norm of all."""
    tensors = {
        TensorName("param_grads", name, 1): torch.zeros(SHAPES.get(name, (1,))) for name in squares
    }
    for name, square in squares.items():
        of = TensorName(GRADIENT_SQUARES, name, 1)
        tensors[of] = torch.tensor(square, dtype=torch.float64)
    return Recording({**tensors, NORM: torch.tensor(norm, dtype=dtype)}, {})


REFERENCE = recording({"weight": WEIGHT, "norm": OF_NORM}, WHOLE)


def faults(
    norms: Sequence[float],
    reference: Recording = REFERENCE,
    samples: Sequence[Recording] = (),
    shards: Sequence[Mapping[str, float]] = SHARDS,
    text: str = TEXT,
    dtype: torch.dtype = torch.float32,
) -> list[Fault]:
    held = [recording(squares, norm, dtype) for squares, norm in zip(shards, norms, strict=True)]
    return told(text, reference, samples, held)


def told(
    text: str, reference: Recording, samples: Sequence[Recording], held: Sequence[Recording]
) -> list[Fault]:
    found = norm_comparisons(trial(text), reference, samples, held)
    return [each.fault for each in found if each.differs]


def test_a_norm_that_is_that_of_all_gradients_is_right() -> None:
    assert faults((WHOLE, WHOLE)) == []


@pytest.mark.parametrize("off", [1e-5, -1e-5, 0.5])
def test_a_norm_that_is_off_by_a_hundred_thousandth_is_told_with_both_numbers(off: float) -> None:
    [fault] = faults((WHOLE, WHOLE * (1 + off)))
    assert (fault.name, fault.fault.kind, fault.times > 1) == (NORM, "norm", True)
    said = f"rank 1 reports {float(torch.tensor(WHOLE * (1 + off))):.9g}, and the gradients of all ranks have the norm 4: "
    assert fault.fault.message.startswith(said)


def test_replicas_count_once_and_so_does_a_tied_tensor() -> None:
    twice = sqrt(WEIGHT + 2 * OF_NORM)
    [fault] = faults((twice, twice))
    assert fault.fault.message.startswith("ranks 0, 1 report 4.79")
    both = recording({"weight": WEIGHT, "head": WEIGHT, "norm": OF_NORM}, WHOLE)
    assert faults((WHOLE, WHOLE), both) == []


def test_a_norm_in_bfloat16_has_the_roundings_of_its_dtype() -> None:
    reference = recording({"weight": WEIGHT, "norm": OF_NORM}, WHOLE, torch.bfloat16)
    assert faults((WHOLE * 1.008,) * 2, reference, dtype=torch.bfloat16) == []
    assert len(faults((WHOLE * 1.03,) * 2, reference, dtype=torch.bfloat16)) == 1


def scaled(squares: Mapping[str, float], factor: float, norm: float) -> Recording:
    return recording({name: square * factor for name, square in squares.items()}, norm)


def test_a_constant_factor_is_that_of_the_reference_if_a_sample_has_it_too() -> None:
    """As that of a loss scale, which the job takes out of the norm."""
    both = {"weight": WEIGHT, "norm": OF_NORM}
    reference, sample = recording(both, WHOLE / 1024), scaled(both, 1.21, WHOLE * 1.1 / 1024)
    assert faults((WHOLE / 1024,) * 2, reference, [sample]) == []
    [fault] = faults((WHOLE / 1000,) * 2, reference, [sample])
    said = "; the reference reports 0.0009765625 times the norm of its gradients: off by 0.024, "
    assert said in fault.fault.message
    assert faults((WHOLE / 1000,) * 2, reference) == []  # nothing shows that it is constant


def test_a_norm_that_does_not_follow_from_the_recorded_gradients_is_not_judged() -> None:
    """As one over some of the parameters."""
    both = {"weight": WEIGHT, "norm": OF_NORM}
    reference = recording(both, sqrt(WEIGHT))
    sample = recording({"weight": WEIGHT * 1.02, "norm": OF_NORM}, sqrt(WEIGHT * 1.02))
    assert faults((5.0, 5.0), reference, [sample]) == []


def test_round_off_of_the_reference_may_be_less_on_shards() -> None:
    """Sums of many squares in float32 lose more of a whole tensor than of a shard."""
    both = {"weight": WEIGHT, "norm": OF_NORM}
    reference = recording(both, WHOLE * 0.999)
    samples = [recording(both, WHOLE * 0.999)]
    for norm in (WHOLE * 0.999, WHOLE * 0.9995, WHOLE):
        assert faults((norm, norm), reference, samples) == []
    for norm in (WHOLE * 0.9989, WHOLE * 1.0001):
        assert len(faults((norm, norm), reference, samples)) == 1


@pytest.mark.parametrize(
    "shards",
    [
        ({"weight": 4.0, "norm": OF_NORM}, {"norm": OF_NORM}),
        ({"weight": 4.0, "norm": OF_NORM}, {"weight": 5.0, "norm": OF_NORM * 1.1}),
    ],
    ids=["a shard is missing", "replicas differ"],
)
def test_gradients_that_do_not_fit_together_have_no_norm(
    shards: Sequence[Mapping[str, float]],
) -> None:
    assert faults((5.0, 5.0), shards=shards) == []


@pytest.mark.parametrize(
    "place", ['grad "weight": [words, width] partial tp', 'param "other": [width]']
)
def test_summands_and_gradients_without_a_place_have_no_norm(place: str) -> None:
    named = place.startswith("grad")
    text = TEXT.replace("\n  tied ", f"  {place}\n\n  tied ") if named else TEXT
    reference = REFERENCE if named else recording({"weight": WEIGHT, "gone": OF_NORM}, WHOLE)
    assert faults((5.0, 5.0), reference, text=text) == []


def test_parts_of_a_distributed_optimizer_add_up() -> None:
    shards = ({"weight": 4.0, "norm": 3.0}, {"weight": 5.0, "norm": 4.0})
    held = [recording(each, WHOLE) for each in shards]
    parts = [replace(each, parts={"norm": (2 * n, 2 * n + 2)}) for n, each in enumerate(held)]
    assert told(TEXT, REFERENCE, (), parts) == []
    alone = [held[0], replace(held[1], parts={"norm": (0, 0)})]
    [fault] = told(TEXT, REFERENCE, (), alone)
    assert "have the norm 3.46410162: " in fault.fault.message


@pytest.mark.parametrize(("norm", "square", "count"), [(inf, inf, 0), (4.0, nan, 1), (nan, 9.0, 1)])
def test_a_norm_is_finite_if_the_gradients_are(norm: float, square: float, count: int) -> None:
    shards = ({"weight": square - 5.0, "norm": OF_NORM}, SHARDS[1])
    assert len(faults((norm, norm), shards=shards)) == count

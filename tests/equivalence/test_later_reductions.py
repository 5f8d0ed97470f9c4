"""Gradients that ranks reduce within the update are told from those that nobody reduces."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.evidence import Evidence
from tspec.equivalence.later_reductions import reduced_later
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.recording import TensorName

GRADIENT, PARAMETER = TensorName("param_grads", "fc", 1), TensorName("params", "fc", 1)
MISSING = Evidence("missing reduction", "the mean of the replicas is the reference")
APART = MergeFault("replicas", "they differ")
LACKS = Fault(GRADIENT, 0, APART, 9, MISSING)
REFERENCE = {TensorName("params", "fc", 0): torch.zeros(4), PARAMETER: torch.ones(4)}
OWN = TensorComparison(GRADIENT, 0, 0.5, 1e-6, 1e-7, norm=1.0)
RIGHT = TensorComparison(PARAMETER, 1, 1e-6, 1e-5, 1e-7, norm=2.0)


@pytest.mark.parametrize(
    ("parameter", "faults", "found"),
    [
        (RIGHT, (LACKS,), True),
        (replace(RIGHT, error=1.0), (LACKS,), False),
        (replace(RIGHT, tolerated=1.0), (LACKS,), False),  # it would be right by any gradient
        (RIGHT, (LACKS, Fault(PARAMETER, 1, APART)), False),
        (RIGHT, (replace(LACKS, evidence=Evidence()),), False),
        (RIGHT, (), False),
    ],
)
def test_a_right_parameter_shows_that_the_update_reduced_its_gradient(
    parameter: TensorComparison, faults: tuple[Fault, ...], found: bool
) -> None:
    assert bool(reduced_later(REFERENCE, (OWN, parameter), faults)) == found


def test_one_right_parameter_tells_of_all_gradients_of_its_step() -> None:
    """Another parameter may be wrong for another reason."""
    of_other = Fault(replace(GRADIENT, name="head"), 2, APART, 9, MISSING)
    wrong = replace(RIGHT, name=replace(PARAMETER, name="head"), error=1.0)
    found = reduced_later(REFERENCE, (OWN, RIGHT, wrong), (LACKS, of_other))
    assert {each.name for each in found} == {"fc", "head"}

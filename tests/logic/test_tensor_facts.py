"""What the logic takes for granted of the features of one tensor is so for real tensors."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tspec.builtin.features import FEATURES
from tspec.logic.tensor_facts import OF_ELEMENTS, RELATIONS, InPython, are_possible
from tspec.runtime.live.features import features

SPECIAL = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf]
ELEMENTS = st.lists(
    st.one_of(
        st.sampled_from(SPECIAL),
        st.floats(-1e6, 1e6, width=32).filter(lambda x: not 0 < abs(x) < 1e-6),
    ),
    min_size=1,
    max_size=8,
)


def features_of(elements):
    """All features of a tensor that rules read, `zeros` as the fraction that they see."""
    [row] = features([torch.tensor(elements, dtype=torch.float32)], sorted(OF_ELEMENTS | {"numel"}))
    row["zeros"] = row["zeros"] / row["numel"] if row["numel"] else 0.0
    return row


@given(ELEMENTS)
def test_relations_hold_of_real_tensors(elements) -> None:
    row = features_of(elements)
    for relation in RELATIONS:
        assert are_possible({name: row[name] for name in relation.names}), (relation.names, row)


def test_what_z3_is_told_holds_of_the_empty_tensor() -> None:
    row = features_of([])
    for relation in RELATIONS:
        if relation.exact:
            assert relation.holds(InPython(0.0), *(row[name] for name in relation.names))


@pytest.mark.parametrize(
    "features",
    [
        {"min": 2.0, "max": 1.0},
        {"min": math.nan, "max": 1.0},
        {"min": -3.0, "max": 1.0, "absmax": 1.0},
        {"min": -3.0, "max": 1.0, "absmax": 4.0},
        {"finite": False, "norm": 1.0},
        {"finite": True, "norm": math.nan},
        {"finite": True, "max": math.inf},
        {"finite": False, "absmax": 1.0},
        {"finite": False, "min": 0.0, "max": 1.0},
        {"finite": True, "nans": 1},
        {"nans": 1, "mean": 0.0},
        {"absmax": 0.0, "norm": 1.0},
        {"absmax": math.nan, "norm": 1.0},
        {"absmax": 2.0, "norm": 1.0},
        {"zeros": 0.5, "min": 1.0, "max": 2.0},
        {"zeros": 1.0, "norm": 1.0},
        {"zeros": 0.5, "norm": 0.0},
        {"mean": 3.0, "min": 1.0, "max": 2.0},
        {"mean": 3.0, "max": 2.0},
        {"std": 0.0, "min": 1.0, "max": 2.0},
        {"std": 1.0, "min": 1.0, "max": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_features_that_no_tensor_has(features) -> None:
    assert not are_possible(features)


def test_each_name_is_a_feature() -> None:
    assert FEATURES.keys() >= OF_ELEMENTS

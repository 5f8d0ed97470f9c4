"""What a saved object holds of the job's models."""

import copy
from collections import OrderedDict

import pytest
import torch
from torch import nn

from tspec.runtime.live.checkpoints.saved import is_own_state, not_loaded, saved_models


class Language(nn.Module):
    """Its first and last layers share one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 8, bias=False)
        self.head.weight = self.embedding.weight


MODEL = Language()
STATE = MODEL.state_dict()
AVERAGE = copy.deepcopy(STATE)
OTHER = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))


def found(saved: object) -> list[tuple[nn.Module, tuple[str, ...]]]:
    return [(each.model, each.missing) for each in saved_models(saved, [MODEL, OTHER])]


def without(state: dict[str, torch.Tensor], *names: str) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in state.items() if name not in names}


@pytest.mark.parametrize(
    "saved",
    [
        STATE,
        MODEL,
        {"model": STATE, "ema": AVERAGE, "epoch": 3},
        {"model": {f"module.{name}": tensor for name, tensor in STATE.items()}},
        {**STATE, "rng": torch.zeros(3), "optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}}},
        {"nets": {"model": MODEL}},
        {"first": without(STATE, "norm.weight"), "second": {"norm.weight": STATE["norm.weight"]}},
        without(STATE, "head.weight"),
        without(STATE, "embedding.weight"),
    ],
)
def test_a_whole_model(saved: object) -> None:
    assert found(saved) == [(MODEL, ())]


def test_what_is_missing() -> None:
    lacking = without(STATE, "norm.running_mean", "norm.bias")
    missing = ("norm.bias", "norm.running_mean")
    assert found({"model": lacking, "ema": lacking}) == [(MODEL, missing)]
    assert found(without(STATE, "head.weight", "embedding.weight")) == [
        (MODEL, ("embedding.weight",))
    ]


def test_each_of_two_models() -> None:
    saved = {"generator": STATE, "critic": without(OTHER.state_dict(), "1.bias")}
    assert found(saved) == [(MODEL, ()), (OTHER, ("1.bias",))]


def test_what_is_no_model() -> None:
    optimizer = torch.optim.Adam(MODEL.parameters())
    MODEL.head(torch.ones(4)).sum().backward()
    optimizer.step()
    assert found(optimizer.state_dict()) == []
    assert found({"loss": torch.zeros(1), "0.weight": 3, "norm.bias": torch.zeros(4)}) == []
    assert found([1, 2]) == found({}) == found(None) == []


@pytest.mark.parametrize(
    ("state", "own"),
    [
        (STATE, True),
        (dict(STATE), True),
        ({"norm.weight": MODEL.norm.weight, "epoch": 3}, True),
        (AVERAGE, False),
        ({**STATE, "norm.weight": torch.ones(4)}, False),
        ({**STATE, "more": torch.ones(4)}, False),
        ({"epoch": 3}, False),
        ({}, False),
    ],
)
def test_a_state_in_the_memory_of_the_model(state: dict[str, object], own: bool) -> None:
    assert is_own_state(MODEL, state) is own


def test_tensors_without_memory_are_nobodys_own() -> None:
    with torch.device("meta"):
        empty = nn.Linear(2, 2)
    assert not is_own_state(empty, empty.state_dict())


@pytest.mark.parametrize(
    ("left_out", "found"),
    [
        ((), []),
        (("head.weight",), []),  # the embedding has the same tensor
        (("embedding.weight",), []),
        (("embedding.weight", "head.weight"), ["embedding.weight", "head.weight"]),
        (("norm.bias", "head.weight"), ["norm.bias"]),
    ],
)
def test_what_is_not_loaded(left_out: tuple[str, ...], found: list[str]) -> None:
    result = copy.deepcopy(MODEL).load_state_dict(without(STATE, *left_out), strict=False)
    state = OrderedDict(STATE)
    state._metadata = {}  # type: ignore[attr-defined]  # of modules that had none of these
    assert not_loaded(MODEL, state, result.missing_keys, []) == found


def test_what_a_script_takes_out_of_a_state_is_left_on_purpose() -> None:
    state = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).state_dict()
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3))
    first = {name: value for name, value in state.items() if name.startswith("0.")}
    del state["1.weight"], state["1.bias"]
    for cut in (state, first):
        result = model.load_state_dict(cut, strict=False)
        assert result.missing_keys == ["1.weight", "1.bias"]
        assert not_loaded(model, cut, *result) == []
        assert not_loaded(model, cut, result.missing_keys, ["head.weight"]) == result.missing_keys
    smaller = nn.Sequential(nn.Linear(2, 2)).state_dict()
    result = model.load_state_dict(smaller, strict=False)
    assert not_loaded(model, smaller, *result) == ["1.weight", "1.bias"]

"""Weights of a checkpoint that nobody takes over."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from tspec.runtime.live.checkpoints.kept_weights import KeptWeights
from tspec.runtime.live.living import instances_of


def weights(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "weight": torch.randn(8, 4, generator=generator),
        "bias": torch.randn(16, generator=generator),
        "count": torch.tensor(3),
    }


def checkpoint(**more: Any) -> dict[str, Any]:
    return {"model": weights(1), "ema": weights(2), "epoch": 3} | more


def saved(**more: Any) -> dict[str, Any]:
    """A later checkpoint."""
    return checkpoint(model=weights(7), **({"ema": weights(8)} | more))


def model(of: dict[str, Any]) -> nn.Parameter:
    """A parameter with the weights of a checkpoint's model."""
    return nn.Parameter(of["model"]["weight"].clone())


def left(known: KeptWeights, saved: dict[str, Any]) -> list[str]:
    known.trains(lambda: instances_of(frozenset({torch.Tensor, nn.Parameter})))
    return [".".join(keys) for keys in known.left_behind(saved)]


def test_weights_that_nobody_holds_are_left_behind() -> None:
    known, state = KeptWeights(), checkpoint()
    held = model(state)
    known.read(state)
    assert left(known, saved()) == ["ema"]
    assert left(known, saved()) == ["ema"]
    assert left(known, {"model": weights(7), "other": weights(8)}) == []
    assert left(known, saved(ema={"weight": torch.ones(2)})) == []
    assert held is not None


def test_a_checkpoint_that_is_let_go_was_read() -> None:
    known, state = KeptWeights(), checkpoint()
    held = model(state)
    known.read(state)
    del state
    assert left(known, saved()) == ["ema"]
    assert held is not None


@pytest.mark.parametrize("way", ["dict", "tensors", "copies", "half"])
def test_weights_that_are_taken_over_are_not(way: str) -> None:
    known, state = KeptWeights(), checkpoint()
    held = model(state)
    known.read(state)
    taken: Any = state.pop("ema")
    if way == "tensors":
        taken = list(taken.values())
    elif way == "copies":
        taken = copy.deepcopy(taken)
    elif way == "half":
        taken = taken["weight"].half()
    del state
    assert left(known, saved()) == []
    assert held is not None and taken is not None


def test_weights_that_are_taken_over_at_a_second_read() -> None:
    known, state = KeptWeights(), checkpoint()
    held = model(state)
    known.read(state)
    assert left(known, saved()) == ["ema"]
    again = checkpoint()
    known.read(again)
    taken = again["ema"]
    assert left(known, saved()) == []
    assert held is not None and taken is not None


def test_a_model_in_shards_says_nothing() -> None:
    known, state = KeptWeights(), checkpoint()
    shard = nn.Parameter(state["model"]["weight"][:4].clone())
    known.read(state)
    assert left(known, saved()) == []
    assert shard is not None


def test_weights_of_a_moment_parts_and_states_of_optimizers_say_nothing() -> None:
    known, state = KeptWeights(), checkpoint(best_model=weights(4), grads=weights(5))
    state["opt"] = {"state": weights(6), "param_groups": []}
    state["small"] = {"weight": torch.rand(2)}
    held = model(state)
    known.read(state)
    flat = torch.randn(48)
    parts = {"weight": flat[:32].view(8, 4), "bias": flat[32:], "count": torch.tensor(3)}
    assert left(known, saved(best_model=weights(9), grads=weights(10), ema=parts)) == []
    assert held is not None


class Run:
    """A model without an average, and its optimizer."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 4))
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "opt": self.optimizer.state_dict()}

    def updates(self) -> None:
        self.model(torch.randn(3, 6)).sum().backward()
        self.optimizer.step()


def earlier() -> dict[str, Any]:
    run = Run(1)
    run.updates()
    return copy.deepcopy(run.state())


@pytest.mark.parametrize("way", ["loads", "copies", "leaves", "leaves all", "saves copies"])
def test_a_model_whose_optimizer_goes_on(way: str) -> None:
    run, known, state = Run(2), KeptWeights(), earlier()
    known.read(state)
    if way != "leaves all":
        known.given(state["opt"])
        run.optimizer.load_state_dict(state["opt"])
    if way == "loads":
        run.model.load_state_dict(state["model"])
    if way == "copies":
        for parameter, value in zip(run.model.parameters(), state["model"].values(), strict=True):
            parameter.data = value.clone()
    del state
    known.trains(lambda: instances_of(frozenset({torch.Tensor, nn.Parameter})))
    run.updates()
    found = run.state()
    if way == "saves copies":  # as ranks that hold parts of a model do
        found["model"] = copy.deepcopy(found["model"])
    assert known.left_behind(found) == ([("model",)] if way == "leaves" else [])


def test_the_best_weights_are_read_for_an_evaluation() -> None:
    """A run that goes on reads another checkpoint, and no optimizer takes its state over."""
    run, known = Run(2), KeptWeights()
    for state in (earlier(), earlier()):
        known.read(state)
        known.trains(lambda: instances_of(frozenset({torch.Tensor, nn.Parameter})))
    assert known.left_behind(run.state()) == []

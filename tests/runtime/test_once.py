"""A rule that is looked at once reads nothing more when all of its subjects were looked at, and new ones again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from tests.runtime.training import module
from tspec.runtime.live.source import LiveSource
from tspec.runtime.pending import SubjectChoice
from tspec.runtime.state import RuleState

RULES = (
    "for p in parameters before optimizer.step once expect finite(p.data)",
    "for p in parameters across world before optimizer.step once expect same(p.data)",
    "for p in parameters across p.replicas before optimizer.step once expect same(p.data)",
)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tensors each read of features was of."""
    found: list[int] = []
    features = LiveSource.features

    def counted(self: LiveSource, tensors: Sequence[Any], names: tuple[str, ...]) -> Any:
        found.append(len(tensors))
        return features(self, tensors, names)

    monkeypatch.setattr(LiveSource, "features", counted)
    return found


def steps(model: nn.Module, count: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(count):
        train(model, optimizer)


def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.randn(3, 2)).sum().backward()
    optimizer.step()


def test_parameters_are_read_once(read: list[int]) -> None:
    with module(RULES[0]).install() as checker:
        steps(nn.Linear(2, 2), 5)
        assert checker.faults == []
    assert sum(read) == 2


@pytest.mark.parametrize("rule", RULES)
def test_each_parameter_has_one_instance_and_new_ones_too(rule: str) -> None:
    with module(rule).install() as checker:
        [state] = checker.tracker.rules
        first = nn.Linear(2, 2)
        steps(first, 4)
        assert state.settled
        assert sum(state.counts.values()) == 2
        second = nn.Linear(2, 2)
        steps(second, 4)
        assert sum(state.counts.values()) == 4
        assert checker.faults == []


TIED = """for p in modules(class: torch.nn.Embedding).parameters
for q in modules(class: torch.nn.Linear).parameters
each step once
when run.step == 1
expect p is q or norm(p.data) != norm(q.data)"""
OF_OPTIMIZERS = """for o in optimizers
for p in o.parameters
before optimizer.step(optimizer: o) once
expect finite(p.data)"""


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The choices of subjects that were looked at, whether they were decided before or not."""
    found: list[tuple[str, ...]] = []
    take = RuleState.take

    def noted(self: RuleState, w: Any, choice: SubjectChoice, leaves: Any) -> None:
        found.append(choice.subjects)
        take(self, w, choice, leaves)

    monkeypatch.setattr(RuleState, "take", noted)
    return found


class Words(nn.Module):
    """A table of words, and layers that may be more."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 2)
        self.layers = nn.ModuleList([nn.Linear(2, 2)])

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        out = self.table(words)
        for layer in self.layers:
            out = layer(out)
        return out.sum()


def test_pairs_are_visited_once_and_those_of_a_new_layer_too(
    visited: list[tuple[str, ...]],
) -> None:
    model = Words()

    def trained(count: int) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(count):
            optimizer.zero_grad()
            model(torch.tensor([0, 1, 2])).backward()
            optimizer.step()

    with module(TIED).install() as checker:
        [state] = checker.tracker.rules
        trained(5)
        first = ["layers.0.weight", "layers.0.bias"]
        assert visited == [("table.weight", name) for name in first]
        model.layers.append(nn.Linear(2, 2))
        trained(5)
        second = [*first, "layers.1.weight", "layers.1.bias"]
        assert set(visited[2:]) == {("table.weight", name) for name in second}
        # Twice at most: the model changes, and there is a second optimizer.
        assert len(visited) <= 2 + 2 * len(second)
    assert checker.faults == []
    assert state.counts == {"holds": 2, "violated": 0, "idle": 2, "unknown": 0}


def test_each_optimizer_is_looked_at_in_its_own_first_update(
    visited: list[tuple[str, ...]],
) -> None:
    one, other = nn.Linear(2, 1), nn.Linear(2, 1)
    with module(OF_OPTIMIZERS).install() as checker:
        optimizers = [torch.optim.SGD(each.parameters(), lr=0.01) for each in (one, other)]
        for step in range(8):
            for place, (model, optimizer) in enumerate(zip((one, other), optimizers, strict=True)):
                if place and step < 4:
                    continue  # it begins later
                train(model, optimizer)
        [state] = checker.tracker.rules
        assert state.counts["holds"] == 4
    assert checker.faults == []
    assert len(visited) == 4


def test_a_parameter_in_place_of_another_is_looked_at(visited: list[tuple[str, ...]]) -> None:
    """A group of an optimizer may hold other parameters of the model than before, as many."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with module(OF_OPTIMIZERS).install() as checker:
        optimizer = torch.optim.SGD(model[1].parameters(), lr=0.01)
        for step in range(6):
            if step == 3:
                optimizer.param_groups[0]["params"] = list(model[0].parameters())
            train(model, optimizer)
        [state] = checker.tracker.rules
        assert state.counts["holds"] == 4
    assert checker.faults == []
    assert len(visited) == 4

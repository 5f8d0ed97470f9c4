"""A rule that is looked at once reads nothing more when all of its subjects were looked at, and new ones again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn

from tests.runtime.training import module
from tspec.runtime.live.source import LiveSource

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
        assert state.settled is not None
        assert sum(state.counts.values()) == 2
        second = nn.Linear(2, 2)
        steps(second, 4)
        assert sum(state.counts.values()) == 4
        assert checker.faults == []

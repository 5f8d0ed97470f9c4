"""A step that ends together with an epoch is closed with its own number and epoch, and its checks count as its own."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.runtime.training import module
from tspec.runtime.actions import RuleViolated

BATCHES, EPOCHS = 2, 3
"""Steps 2 and 4 end together with an epoch, step 6 with the run."""


def epochs() -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.ones(4 * BATCHES, 3)), batch_size=4)
    for _ in range(EPOCHS):
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()


def decided(rule: str) -> list[tuple[int, str]]:
    """The step and the verdict of each decision."""
    seen: list[tuple[int, str]] = []

    def observe(decision: Any) -> None:
        seen.append((decision.step, decision.verdict))

    with module(rule).install(observer=observe) as checker:
        epochs()
        assert checker.faults == []
    return [each for each in seen if each[0] > 0]


@pytest.mark.parametrize("number", range(1, BATCHES * EPOCHS + 1))
def test_a_step_has_its_own_number_and_epoch_where_it_ends(number: int) -> None:
    epoch = (number + BATCHES - 1) // BATCHES
    found = decided(f"each step\nexpect step != {number} or epoch == {epoch}")
    assert found == [(step, "holds") for step in range(1, BATCHES * EPOCHS + 1)]
    found = decided(f"each step\nexpect step != {number} or epoch != {epoch}")
    assert [step for step, verdict in found if verdict == "violated"] == [number]


@pytest.mark.parametrize("count", range(2, BATCHES * EPOCHS))
def test_failed_checks_in_a_row_count_over_the_end_of_an_epoch(count: int) -> None:
    found: list[dict[str, Any]] = []
    hooks = module(
        f"each step\nwhen step > 0\nexpect step == 0\nelse raise after {count} consecutive"
    )
    with pytest.raises(RuleViolated), hooks.install(callback=found.append):
        epochs()
    assert [each["step"] for each in found] == [count]


def failing_at(steps: tuple[int, ...], otherwise: str = "warn") -> list[tuple[int, int]]:
    """The findings of a rule that fails at these steps: the step, and the last one before in which it held."""
    found: list[dict[str, Any]] = []
    hooks = module(f"each step\nexpect not (step in {list(steps)})\nelse {otherwise}")
    with suppress(RuleViolated), hooks.install(callback=found.append):
        epochs()
    return [(each["step"], each["held"]) for each in found]


@pytest.mark.parametrize("number", range(2, BATCHES * EPOCHS + 1))
def test_a_check_that_holds_is_one_of_the_step_that_ends(number: int) -> None:
    assert failing_at((number,)) == [(number, number - 1)]


def test_failed_checks_count_in_the_epoch_of_the_step_that_ends() -> None:
    last_of_first, first_of_third = BATCHES, 2 * BATCHES + 1
    assert failing_at((last_of_first, first_of_third), "raise after 2 of 2 epochs") == []
    found = failing_at((last_of_first + 1, first_of_third), "raise after 2 of 2 epochs")
    assert found == [(first_of_third, first_of_third - 1)]

"""Targets are looked for among the inputs of the model."""

import pytest
import torch

from tspec.runtime.live.samples.leaks import LOSSES, LeakedTargets

torch.manual_seed(0)
ROWS = torch.randn(32, 12)
LABELS = torch.arange(32) % 3
SERIES = ROWS.view(32, 4, 3)
LOSS = torch.ones((), requires_grad=True)


def _leaked(given: torch.Tensor, target: torch.Tensor, loss: torch.Tensor = LOSS) -> bool | None:
    leaks = LeakedTargets()
    leaks.gives((torch.arange(32), given))
    return leaks.leaked_targets(target, loss)


@pytest.mark.parametrize(
    ("given", "target", "found"),
    [
        (ROWS, ROWS[:, 3], True),
        (ROWS, ROWS[:, 3:4], True),
        (SERIES, SERIES[:, 2:, 0], True),
        (torch.cat([ROWS, LABELS[:, None]], 1), LABELS, True),
        (ROWS, LABELS, False),
        (ROWS, ROWS[:, 2:4] + torch.tensor([0.0, 0.1]), False),
        (ROWS, ROWS, None),
        (ROWS, torch.ones(32), None),
        (ROWS[:8], ROWS[:8, 0], None),
        (ROWS.clone().requires_grad_(), ROWS[:, 3], None),
    ],
)
def test_targets_among_the_inputs(given, target, found: bool | None) -> None:
    assert _leaked(given, target) is found


def test_an_evaluation_and_later_losses_are_not_looked_at() -> None:
    assert _leaked(ROWS, ROWS[:, 3], LOSS.detach()) is None
    leaks = LeakedTargets()
    with torch.no_grad():
        leaks.gives((ROWS,))
    assert leaks.leaked_targets(ROWS[:, 3], LOSS) is None
    leaks.gives((ROWS,))
    found = [leaks.leaked_targets(ROWS[:, 3], LOSS) for _ in range(LOSSES)]
    assert found == [True] * (LOSSES - 1) + [None]

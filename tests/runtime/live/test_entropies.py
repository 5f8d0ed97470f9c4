"""Whether a loss adds an entropy or subtracts it."""

from collections.abc import Callable

import pytest
import torch

from tspec.runtime.live.losses.entropies import Entropies
from tspec.runtime.live.losses.graph import PASSES

X = torch.randn(4, 5, requires_grad=True)


def added(loss: Callable[[torch.Tensor], torch.Tensor]) -> int | None:
    seen = Entropies()
    entropy = torch.distributions.Categorical(logits=X).entropy()
    assert seen.is_entropy(entropy)
    return seen.added_entropies(loss(entropy))


@pytest.mark.parametrize(
    "loss",
    [
        lambda entropy: X.sum() - 0.1 * entropy.mean(),
        lambda entropy: -(X.sum() + 0.1 * entropy.mean()),
        lambda entropy: X.sum() + 0.1 * -entropy.mean(),
        lambda entropy: (X.sum(1) - entropy / 100).mean(),
        lambda entropy: X.sum(),
        # Nothing is known of the sign of a temperature that is learned.
        lambda entropy: X.sum() + X[0, 0] * entropy.mean(),
    ],
)
def test_entropies_that_are_rewarded(loss: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert added(loss) == 0


@pytest.mark.parametrize(
    "loss",
    [
        lambda entropy: X.sum() + 0.1 * entropy.mean(),
        lambda entropy: X.sum() - -0.1 * entropy.mean(),
        lambda entropy: -(X.sum() - 0.1 * entropy.mean()),
        lambda entropy: (X.sum(1) + entropy / 100).mean(),
    ],
)
def test_entropies_that_are_penalised(loss: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert added(loss) == 1


def test_losses_without_an_entropy_and_later_ones() -> None:
    seen = Entropies()
    assert seen.added_entropies(X.sum()) is None
    assert not seen.is_entropy(X.detach())
    assert seen.added_entropies(X.sum()) is None
    for _ in range(PASSES):
        entropy = (X * 2).sum()
        assert seen.is_entropy(entropy)
        assert seen.added_entropies(entropy) == 1
    assert seen.is_entropy(X.sum())
    assert seen.added_entropies(X.sum()) is None

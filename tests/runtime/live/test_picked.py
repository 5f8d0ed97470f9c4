"""Cross entropies by hand."""

import pytest
import torch
from torch.nn import functional as F

from tspec.runtime.live.losses.picked import picked_across, picked_activations, picked_loss

LABELS = torch.tensor([0, 2, 1, 2, 0, 1])
ROWS = torch.arange(6)
BY_HAND = [
    lambda x: -F.log_softmax(x, 1).gather(1, LABELS[:, None]).mean(),
    lambda x: -F.log_softmax(x, -1)[ROWS, LABELS].mean(),
    lambda x: -torch.log_softmax(x, 1).gather(-1, LABELS[:, None]).squeeze(1).sum() / 6,
    lambda x: -torch.take_along_dim(x.log_softmax(1), LABELS[:, None], 1).mean(),
]


def logits() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(6, 3, requires_grad=True)


@pytest.mark.parametrize("loss", BY_HAND)
def test_a_cross_entropy_by_hand_is_read(loss) -> None:
    x = logits()
    assert picked_across(loss(x)) == 0
    assert picked_activations(loss(x)) == []
    assert picked_activations(loss(x.softmax(1))) == ["softmax"]
    assert picked_activations(loss(x.relu())) == ["relu"]


def test_the_whole_loss_and_its_labels() -> None:
    x = logits()
    found = picked_loss(BY_HAND[0](x) / 4)
    assert found is not None
    assert found[0].item() == pytest.approx(F.cross_entropy(x, LABELS).item())
    assert torch.equal(found[1], LABELS)
    assert picked_loss(BY_HAND[0](x) + x.square().mean()) is None
    weighed = F.log_softmax(x, 1)[ROWS, LABELS] * torch.linspace(0.1, 1, 6)  # advantages
    assert picked_loss(-weighed.mean()) is None


def test_probabilities_over_the_samples() -> None:
    x = logits()
    assert picked_across(-F.log_softmax(x, 0).gather(1, LABELS[:, None]).mean()) == 1
    assert picked_across(-x.softmax(0).log()[ROWS, LABELS].mean()) == 1
    assert picked_across(-x.softmax(1).log()[ROWS, LABELS].mean()) == 0


def test_other_picks_and_losses_are_left_out() -> None:
    x = logits()
    some = -F.log_softmax(x, 0).gather(1, LABELS[:, None].repeat(1, 2)).mean()
    assert picked_across(some) == 0
    assert picked_across(-F.log_softmax(x, 0)[LABELS, LABELS].mean()) == 0
    assert picked_across(F.cross_entropy(x.softmax(1), LABELS)) == 0
    assert picked_activations(F.cross_entropy(x.softmax(1), LABELS)) == []

"""Cross entropies by hand."""

import pytest
import torch
from torch.nn import functional as F

from tspec.runtime.live.losses.picked import (
    PickedTokens,
    picked_across,
    picked_activations,
    picked_loss,
)
from tspec.runtime.live.losses.tokens import TokenHistory

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
    assert picked_across(-x.softmax(0).gather(1, LABELS[:, None]).mean()) == 0  # no logarithm
    assert picked_across(F.cross_entropy(x.softmax(1), LABELS)) == 0
    assert picked_activations(F.cross_entropy(x.softmax(1), LABELS)) == []


@pytest.mark.parametrize(("shift", "ahead"), [(1, 1), (0, 0), (2, 2)])
def test_labels_that_pick_are_compared_with_tokens(shift: int, ahead: int) -> None:
    torch.manual_seed(0)
    table, last = torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20)
    text = torch.randint(0, 20, (4, 12))
    tokens, labels = text[:, : 12 - shift], text[:, shift:]
    history = TokenHistory()
    history.given(tokens)
    likely = last(table(tokens)).log_softmax(-1)
    loss = -likely.gather(2, labels[..., None]).squeeze(2).mean()
    picked = PickedTokens(history)
    assert picked.picked_ahead(loss) == ahead
    assert picked.picked_sees_later(loss) == "none"


@pytest.mark.parametrize(("shift", "ahead"), [(1, 1), (0, 0)])
def test_labels_that_a_mask_leaves_out_are_not_compared(shift: int, ahead: int) -> None:
    torch.manual_seed(0)
    text, question = torch.randint(1, 20, (4, 12)), torch.arange(12 - shift) < 3
    tokens, labels = text[:, : 12 - shift], text[:, shift:].masked_fill(question, 0)
    history = TokenHistory()
    history.given(tokens)
    likely = torch.randn(4, 12 - shift, 20, requires_grad=True).log_softmax(-1)
    picked = likely.gather(2, labels[..., None]).squeeze(2)
    better, worse = (picked * ~question).sum(-1).chunk(2)
    loss = -F.logsigmoid(better - worse).mean()
    assert PickedTokens(history).picked_ahead(loss) == ahead
    assert PickedTokens(history).picked_ahead(-picked.mean()) is None


LENGTHS = torch.tensor([[5], [9], [12], [7]])
IS_PADDING = torch.arange(12) >= LENGTHS
TEXT = torch.arange(48).reshape(4, 12).add(1).masked_fill(IS_PADDING, 0)
PADS = int(IS_PADDING.sum())
AVERAGES = {
    "all": (lambda losses: losses.mean(), PADS),
    "sum": (lambda losses: losses.sum() / len(losses), PADS),
    "smoothed": (lambda losses: (0.9 * losses).mean() + 0.1, PADS),
    "index": (lambda losses: losses[~IS_PADDING].mean(), None),
    "product": (lambda losses: (losses * ~IS_PADDING).sum() / PADS, None),
    "weights of places": (lambda losses: (losses / (1 + IS_PADDING)).mean(), None),
    "filled": (lambda losses: losses.masked_fill(IS_PADDING, 0).mean(), None),
    "where": (lambda losses: torch.where(IS_PADDING, 0, losses).mean(), None),
}


def picked_of_text(average, *inputs: tuple[torch.Tensor, int | None]) -> int | None:
    """What is said of a cross entropy by hand of the labels of `TEXT`, beside other inputs."""
    history = TokenHistory()
    for tokens, padding in ((TEXT, 0), *inputs):
        history.given(tokens, padding)
    logits = torch.randn(4, 12, 50, requires_grad=True)
    losses = -logits.log_softmax(-1).gather(2, TEXT.roll(-1, 1)[..., None])[..., 0]
    return PickedTokens(history).picked_padding(average(losses))


@pytest.mark.parametrize("kind", AVERAGES)
def test_padding_that_no_mask_leaves_out(kind: str) -> None:
    average, padding = AVERAGES[kind]
    assert picked_of_text(average) == padding


def test_padding_of_other_inputs() -> None:
    """An encoder's texts may have less padding, or none; other tables may have no row for it."""
    everything = AVERAGES["all"][0]
    shorter = TEXT.masked_fill(torch.arange(12) >= LENGTHS.flip(0) + 1, 0)
    assert picked_of_text(everything, (shorter, 0)) == PADS
    assert picked_of_text(everything, (TEXT.clamp(min=1), 0)) == 0
    assert picked_of_text(everything, (TEXT, None)) is None
    assert picked_of_text(everything, (TEXT[:2], None)) == PADS

"""The last targets of padded sequences."""

import torch

from tspec.runtime.live.losses.endings import SequenceEndings
from tspec.runtime.live.losses.tokens import TokenHistory

IGNORED, END, LENGTH = -100, 0, 12
LENGTHS = torch.arange(16) % 6 + 4


def batch(end: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts of tokens from 1 to 50, padded with the token that ends them, and the next token of each place."""
    torch.manual_seed(0)
    places = torch.arange(LENGTH)
    tokens = torch.randint(1, 50, (16, LENGTH)).masked_fill(places >= LENGTHS[:, None], END)
    ahead = torch.cat((tokens[:, 1:], tokens[:, -1:]), 1)
    last = LENGTHS - 1 if end else LENGTHS - 2
    return tokens, ahead.masked_fill(places > last[:, None], IGNORED)


def ends(tokens: torch.Tensor, targets: torch.Tensor) -> float | None:
    history = TokenHistory()
    history.given(tokens)
    return SequenceEndings(history).ends_alike(targets, IGNORED)


def test_the_token_that_ends_texts_is_their_last_target() -> None:
    tokens, targets = batch()
    assert ends(tokens, targets) == 1
    assert ends(tokens, targets.flatten()) == 1
    assert ends(tokens.t(), targets.t()) == 1


def test_other_last_targets_differ_from_text_to_text() -> None:
    tokens, targets = batch(end=False)
    found = ends(tokens, targets)
    assert found is not None and found < 0.3


def test_texts_that_are_not_padded_or_few_show_no_end() -> None:
    tokens, targets = batch(end=False)
    assert ends(tokens[:7], targets[:7]) is None
    whole = torch.randint(1, 50, (16, LENGTH))
    assert ends(whole[:, :-1], whole[:, 1:]) is None
    assert ends(tokens, tokens.masked_fill(tokens == END, IGNORED)) is None  # not the next tokens
    assert ends(tokens, torch.rand(16, LENGTH)) is None

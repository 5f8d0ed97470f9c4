"""By how many places targets are ahead of the tokens that an embedding was given."""

import pytest
import torch

from tspec.runtime.live.losses.tokens import LOSSES, TokenHistory

torch.manual_seed(0)
TEXT = torch.randint(1, 50, (4, 20))


def ahead(tokens: torch.Tensor, target: torch.Tensor, ignored: int = -100) -> int | None:
    history = TokenHistory()
    history.given(torch.zeros(4, 20).long())  # segments, say
    history.given(tokens)
    return history.tokens_ahead(target, ignored)


def shifted(by: int, fill: int = -100) -> torch.Tensor:
    """Targets as many places ahead, as long as the text."""
    rest = torch.full((4, by), fill)
    return torch.cat([TEXT[:, by:], rest], 1)


@pytest.mark.parametrize("by", [0, 1, 2])
def test_as_long_as_the_text(by: int) -> None:
    target = shifted(by)
    assert ahead(TEXT, target) == by
    assert ahead(TEXT, target.flatten()) == by
    assert ahead(TEXT.t(), target.t()) == by
    assert ahead(TEXT.t(), target.t().flatten()) == by


@pytest.mark.parametrize("by", [0, 1, 2])
def test_padding_and_prompts_do_not_count(by: int) -> None:
    target = shifted(by)
    target[:, :5] = -100
    target[2, 11:] = -100
    assert ahead(TEXT, target) == by


def test_slices() -> None:
    assert ahead(TEXT, TEXT[:, 1:]) == 1
    assert ahead(TEXT[:, :-1], TEXT[:, 1:].flatten()) == 1
    assert ahead(TEXT[:, :-1], TEXT[:, 2:].flatten()) == 2
    assert ahead(TEXT[:, 1:], TEXT[:, :-1]) == -1


def test_one_of_several_inputs_is_enough() -> None:
    history = TokenHistory()
    history.given(TEXT)  # what is translated, or coded
    history.given(torch.cat([torch.zeros(4, 1).long(), TEXT[:, :-1]], 1))
    assert history.tokens_ahead(TEXT, -100) == 1


def test_what_is_no_text() -> None:
    masked = TEXT.clone()
    masked[:, ::5] = 0
    assert ahead(masked, TEXT) is None
    assert ahead(TEXT, torch.randint(5, (4, 20))) is None
    assert ahead(TEXT, torch.randint(5, (4,))) is None
    assert ahead(TEXT, torch.zeros(4, 20)) is None
    assert ahead(TEXT, torch.full((4, 20), -100)) is None
    assert ahead(torch.ones(4, 20).long(), torch.ones(4, 20).long()) is None
    assert ahead(TEXT[:, :1], TEXT[:, :1]) is None
    assert ahead(TEXT[0], TEXT[0]) is None


def test_what_was_learnt_is_forgotten() -> None:
    history = TokenHistory()
    history.given(TEXT)
    history.clear()
    assert history.tokens_ahead(shifted(1), -100) is None


def test_later_losses_are_not_compared() -> None:
    history = TokenHistory()
    history.given(TEXT)
    found = [history.tokens_ahead(shifted(1), -100) for _ in range(LOSSES + 1)]
    assert found == [1] * LOSSES + [None]


def test_targets_that_are_seen_at_their_own_place() -> None:
    history = TokenHistory()
    assert history.visible_targets(TEXT, -100) is None
    history.given(TEXT)
    masked, at_end = torch.arange(20) % 4 == 0, torch.arange(20) > 16
    assert history.visible_targets(TEXT, -100) is None
    assert history.visible_targets(TEXT.masked_fill(at_end, -100), -100) is None
    assert history.visible_targets(TEXT.masked_fill(masked, -100), -100) == 1.0
    history.clear()
    history.given(TEXT.masked_fill(masked, 50))
    assert history.visible_targets(TEXT, -100) == 0.75
    assert history.visible_targets(TEXT.masked_fill(~masked, -100), -100) == 0.0
    assert history.visible_targets(TEXT.flatten(), -100) == 0.75
    assert history.visible_targets(torch.full_like(TEXT, -100), -100) is None
    assert history.visible_targets(TEXT[:, :-3], -100) is None


def test_targets_at_chosen_places_that_are_seen() -> None:
    history = TokenHistory()
    chosen, at_end = torch.arange(20) % 2 == 0, torch.arange(20) > 16
    targets = TEXT.masked_fill(~chosen, -100)
    assert history.visible_chosen(targets, -100) is None
    history.given(TEXT)
    assert history.visible_chosen(TEXT, -100) is None
    assert history.visible_chosen(TEXT.masked_fill(at_end, -100), -100) is None
    assert history.visible_chosen(targets, -100) == 1.0
    history.clear()
    history.given(TEXT.masked_fill(torch.arange(20) % 4 == 0, 50))
    assert history.visible_chosen(targets, -100) == 0.5

"""By how many places targets are ahead of tokens that an embedding was given one place at a time."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tspec.runtime.live.losses.causality import Causality
from tspec.runtime.live.losses.tokens import LOSSES, TokenHistory
from tspec.runtime.live.sampling import TrainingSampling

BATCH, PLACES, WORDS = 5, 8, 40
torch.manual_seed(0)
TEXT = torch.randint(1, WORDS, (BATCH, PLACES + 2))
TABLE, CELL = nn.Embedding(WORDS, 6), nn.GRUCell(6, 6)
HEAD = nn.Linear(6, WORDS)


def decoded(history: TokenHistory, seen_at_once: int = 1) -> list[torch.Tensor]:
    """The logits of each place, `[batch, words]`, of which each is computed from so many tokens more."""
    hidden, words = torch.zeros(BATCH, 6), []
    for place in range(PLACES):
        history.given(TEXT[:, place], None, TABLE.weight)
        words.append(TABLE(TEXT[:, place]))
    logits = []
    for place in range(PLACES):
        hidden = CELL(sum(words[place : place + seen_at_once]), hidden)
        logits.append(HEAD(hidden))
    return logits


def filled(logits: list[torch.Tensor]) -> torch.Tensor:
    """What a script writes to a tensor, one place after the other: `[places, batch, words]`."""
    whole = torch.zeros(PLACES, BATCH, WORDS)
    for place, each in enumerate(logits):
        whole[place] = each
    return whole


@pytest.mark.parametrize("by", [0, 1, 2])
def test_losses_of_one_place_each(by: int) -> None:
    history, found = TokenHistory(), []
    causality = Causality(history, TrainingSampling())
    for place in range(PLACES):
        history.given(TEXT[:, place], None, TABLE.weight)
        logits, target = HEAD(TABLE(TEXT[:, place])), TEXT[:, place + by]
        found.append(history.tokens_ahead(target, -100))
        sees = causality.sees_later(logits, target, -100)
        assert sees == (None if found[-1] is None else "none")
    known = 3 + by
    assert found == [None] * known + [by] * (PLACES - known)


@pytest.mark.parametrize("by", [0, 1])
@pytest.mark.parametrize("join", ["stack", "cat", "filled"])
def test_one_loss_of_all_places(by: int, join: str) -> None:
    history = TokenHistory()
    logits, target = decoded(history), TEXT[:, by : PLACES + by]
    if join == "stack":
        whole, target = torch.stack(logits, 1).flatten(0, 1), target.reshape(-1)
    elif join == "cat":
        whole, target = torch.cat(logits), target.t().reshape(-1)
    else:
        whole, target = filled(logits).view(-1, WORDS), target.t().reshape(-1)
    assert history.tokens_ahead(target, -100) == by
    assert Causality(history, TrainingSampling()).sees_later(whole, target, -100) == "none"


def test_a_loop_whose_first_output_sees_later_places() -> None:
    history = TokenHistory()
    whole, target = torch.cat(decoded(history, 2)), TEXT[:, :PLACES].t().reshape(-1)
    assert history.tokens_ahead(target, -100) == 0
    assert Causality(history, TrainingSampling()).sees_later(whole, target, -100) is None


def test_padding_does_not_count() -> None:
    history = TokenHistory()
    decoded(history)
    target = TEXT[:, 1 : PLACES + 1].clone()
    target[2, 4:] = -100
    assert history.tokens_ahead(target.reshape(-1), -100) == 1


def test_columns_of_several_tables_are_no_sequence() -> None:
    """Categories of a table, each with an embedding of its own."""
    history = TokenHistory()
    tables = [nn.Embedding(WORDS, 6) for _ in range(PLACES)]
    for place, table in enumerate(tables):
        history.given(TEXT[:, place], None, table.weight)
    assert history.tokens_ahead(TEXT[:, :PLACES].t().reshape(-1), -100) is None
    history.given(TEXT[:, 0], None, tables[0].weight)
    assert history.tokens_ahead(TEXT[:, 0], -100) is None


def test_losses_of_one_place_are_one_together_and_end() -> None:
    history = TokenHistory()
    for update in range(LOSSES):
        assert not history.is_over()
        for place in range(PLACES):
            history.given(TEXT[:, place], None, TABLE.weight)
            found = history.tokens_ahead(TEXT[:, place], -100)
        assert found == 0, update
        history.clear()
    assert history.is_over()
    assert history.tokens_ahead(TEXT[:, 0], -100) is None


def test_class_ids_of_one_lookup_are_no_tokens() -> None:
    history = TokenHistory()
    ids = torch.randint(WORDS, (64,))
    history.given(ids, None, TABLE.weight)
    assert F.cross_entropy(HEAD(TABLE(ids)), ids) > 0
    assert history.tokens_ahead(ids, -100) is None

"""Whether sequences look up more than the first row of a table of places."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tspec.runtime.live.samples.places import CALLS, LookedUpPlaces

BATCH, LENGTH = 4, 16
TOKENS = torch.arange(BATCH * LENGTH).reshape(BATCH, LENGTH) % 7


def found(
    numbers: torch.Tensor, rows: int, tokens: torch.Tensor = TOKENS, calls: int = 2
) -> bool | None:
    """What is known of a table of `rows` rows at the last of some passes."""
    tables, places = LookedUpPlaces(), nn.Embedding(rows, 2).weight
    of_tokens, known = nn.Embedding(100, 2).weight, None
    for _ in range(calls):
        tables.first_row_alone(tokens, of_tokens)
        known = tables.first_row_alone(numbers, places)
    return known


ZEROS = [torch.zeros(shape, dtype=torch.long) for shape in ((16,), (1, 16), (BATCH, 16))]


@pytest.mark.parametrize("zeros", ZEROS)
def test_places_that_are_all_zero(zeros: torch.Tensor) -> None:
    assert found(zeros, rows=LENGTH) is True
    assert found(torch.arange(LENGTH).expand(zeros.shape), rows=LENGTH) is False
    assert found(zeros, rows=LENGTH, calls=CALLS + 1) is None


@pytest.mark.parametrize("zeros", ZEROS)
def test_zeros_that_are_no_places(zeros: torch.Tensor) -> None:
    assert found(zeros, rows=2) is None  # types of tokens
    assert found(zeros, rows=64, tokens=TOKENS[:, :12]) is None  # sequences of another length
    with torch.no_grad():
        assert found(zeros, rows=LENGTH) is None


def test_one_class_for_all_samples() -> None:
    tokens = torch.arange(LENGTH * LENGTH).reshape(LENGTH, LENGTH) % 7
    assert found(ZEROS[0], rows=100, tokens=tokens) is None
    assert found(torch.zeros(2, 16, dtype=torch.long), rows=100) is None  # of other sequences


def test_a_table_that_is_looked_up_with_one_number_after_another() -> None:
    tables, levels, tokens = LookedUpPlaces(), nn.Embedding(32, 2).weight, nn.Embedding(9, 2).weight
    known = []
    for _ in range(3):
        tables.first_row_alone(TOKENS, tokens)
        known += [tables.first_row_alone(torch.full((LENGTH,), n), levels) for n in range(3)]
    assert known == [True, *[False] * 8]

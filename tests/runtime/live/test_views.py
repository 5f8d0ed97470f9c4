"""Views that stand where a transpose was meant, and splits and merges that move nothing."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from tspec.runtime.live.losses.views import swapping_views, swaps


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((50, 32, 4, 4), (50, 16, 32)),  # patches of a map
        ((50, 3, 8, 8), (3200, 3)),  # classes of pixels
        ((50, 2, 8, 8), (3200, 2)),
        ((2, 8, 8, 3), (2, 3, 8, 8)),  # channels last, to channels first
        ((2, 3, 8, 8), (2, 8, 8, 3)),
        ((7, 12, 64), (12, 7, 64)),  # steps and samples
        ((4, 10, 64), (4, 64, 10)),
        ((10, 5, 32), (40, 5, 8)),  # heads that were not moved before they go to the batch
        ((16, 4, 32, 16), (16, 32, 64)),  # heads that were not moved before they are merged
        ((16, 32, 64), (16, 4, 32, 16)),  # steps that were not moved before they are in heads
    ],
)
def test_shapes_of_transposes(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    assert swaps(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((50, 32, 4, 4), (50, 512)),
        ((8, 16, 64), (128, 64)),  # samples and steps
        ((8, 16, 64), (8, 16, 4, 16)),  # heads
        ((32, 64, 8, 8), (32, 8, 512)),  # groups of channels, as many as rows
        ((32, 8, 512), (32, 64, 8, 8)),
        ((2, 16, 32), (16, 64)),  # every two samples together
        ((16, 160, 32), (160, 16, 32)),  # parts of sequences, as long as there are samples
        ((98, 8, 32), (98, 32, 8)),  # heads, as long as there are samples
        ((98, 32, 8), (784, 32)),
        ((4, 3, 16, 16), (4, 3, 4, 4, 4, 4)),
        ((100, 96), (150, 64)),  # blocks of a matrix
        ((32, 10), (160, 2)),
        ((32, 1, 64), (32, 64)),
        ((6,), (2, 3)),
        ((0, 3), (3, 0)),
        ((), (1,)),
    ],
)
def test_splits_and_merges(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    assert not swaps(before, after)


@given(st.lists(st.lists(st.integers(1, 6), max_size=3), max_size=4))
def test_merging_and_splitting_alone_move_nothing(parts: list[list[int]]) -> None:
    split = [size for part in parts for size in part]
    merged = [int(torch.Size(part).numel()) for part in parts]
    assert not swaps(split, merged)
    assert not swaps(merged, split)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, requires_grad=True)


def states(samples: int) -> torch.Tensor:
    """The last states of a layer that reads in both directions, `[2, samples, 4]`."""
    return nn.GRU(3, 4, bidirectional=True)(drawn(5, samples, 3))[1]


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        (lambda: drawn(5, 3, 8, 8).reshape(-1, 3), ["[5, 3, 8, 8] -> [320, 3]"]),
        (lambda: drawn(5, 8, 3, 8).transpose(1, 2).reshape(-1, 3), ["[5, 3, 8, 8] -> [320, 3]"]),
        (lambda: drawn(5, 3, 8, 8).permute(0, 2, 3, 1).reshape(-1, 3), []),
        (lambda: drawn(12, 4).mul(2).t().reshape(12, 4), ["[4, 12] -> [12, 4]"]),
        (
            lambda: drawn(2, 6, 3).mul(2).transpose(1, 2).reshape(2, 6, 3),
            ["[2, 3, 6] -> [2, 6, 3]"],
        ),
        (lambda: drawn(4, 4).mul(2).t().reshape(4, 4), []),
        (
            lambda: drawn(2, 3, 4, 5).mul(2).transpose(1, 2).reshape(2, 12, 5),
            [],
        ),  # shuffled channels
        (lambda: drawn(5, 3, 8, 8).flatten(2).transpose(1, 2), []),
        (lambda: states(6).view(6, -1), ["[2, 6, 4] -> [6, 8]"]),
        (lambda: states(6).transpose(0, 1).reshape(6, -1), []),
        (lambda: states(2).view(2, -1), []),
        (lambda: torch.einsum("bd,bkd->bk", drawn(8, 6), drawn(8, 3, 6)), []),
        (lambda: F.pad(drawn(2, 7, 5), (1, 0)).view(2, 6, 7)[:, 1:], []),  # relative positions
        (lambda: drawn(2, 7, 5).reshape(2, 5, 7)[:, 1:].reshape(2, 7, 4), []),
    ],
)
def test_views_of_a_graph(computed, expected: list[str]) -> None:
    assert swapping_views(computed().sum()) == expected

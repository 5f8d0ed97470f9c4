"""Shards make the tensor that was cut, and each way in which they do not is told."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
import torch
from hypothesis import given, settings

from tests.layout.cut import AXES, layout_of, placements
from tspec.equivalence.cut import Cut, Run, whole
from tspec.equivalence.cuts import cut_of
from tspec.equivalence.merge import RankShard, merge
from tspec.layout.ranks import coordinates
from tspec.layout.shards import shard
from tspec.layout.sizes import sizes_of
from tspec.resolve.program.sharding import Placement

WORLD = prod(size for _, size in AXES)


@settings(max_examples=60, deadline=None)
@given(placements())
def test_pieces_make_the_tensor_that_was_cut(place: Placement) -> None:
    layout = layout_of(place)
    shards = [shard(layout, "param", "w", rank, sizes_of(layout)) for rank in range(WORLD)]
    full = torch.randn(shards[0].full)
    spare = [name for name, _ in AXES if name not in place.cut_over][:1]
    count = prod(dict(AXES)[name] for name in spare)
    pieces = []
    for rank, each in enumerate(shards):
        cut = cut_of(each)
        positions = cut.positions()
        held = full.flatten()[positions.clamp(min=0)].masked_fill(positions < 0, 99.0)
        summand = tuple(coordinates(AXES, rank)[name] for name in spare)
        pieces.append(RankShard(rank, cut, held.double() / count, summand))
    merged = merge(tuple(full.shape), pieces)
    assert (merged.faults, merged.spreads) == ((), ())
    assert merged.tensor is not None
    assert torch.allclose(merged.tensor, full.double(), rtol=1e-12)


TOP, BOTTOM = (Cut((4, 2), (((start, 2, 0, 1),), ((0, 2, 0, 1),))) for start in (0, 2))


def halves() -> list[RankShard]:
    return [RankShard(0, TOP, torch.ones(2, 2)), RankShard(1, BOTTOM, torch.ones(2, 2))]


def test_a_rank_without_its_tensor_is_told() -> None:
    first, second = halves()
    merged = merge((4, 2), [first, replace(second, tensor=None)])
    assert merged.tensor is None
    [fault] = merged.faults
    assert (fault.kind, fault.message) == ("missing", "rank 1 recorded no such tensor")


def test_a_wrong_shape_is_told() -> None:
    first, second = halves()
    merged = merge((4, 2), [first, replace(second, tensor=torch.ones(2, 3))])
    [fault] = merged.faults
    assert fault.kind == "shape"
    assert fault.message == "rank 1 has [2, 3], and the layout says [2, 2]"
    merged = merge((4, 2), [replace(each, tensor=torch.ones(2, 3)) for each in (first, second)])
    [fault] = merged.faults
    assert fault.message == "ranks 0, 1 have [2, 3], and the layout says [2, 2]"


def test_omission_and_overlap_are_told_with_an_element() -> None:
    first, second = halves()
    middle = Cut((4, 2), (((1, 2, 0, 1),), ((0, 2, 0, 1),)))
    [fault] = merge((4, 2), [first]).faults
    assert (fault.kind, fault.message) == ("omission", "no rank holds element (2, 0) and 3 more")
    omission, overlap = merge((4, 2), [first, replace(second, cut=middle)]).faults
    assert omission.message == "no rank holds element (3, 0) and 1 more"
    assert overlap.kind == "overlap"
    assert overlap.message == "ranks that are no replicas hold element (1, 0) and 1 more"


def test_replicas_with_other_bits_are_told_with_their_distance() -> None:
    first, second = halves()
    other = RankShard(2, TOP, torch.tensor([[1.0, 1.0], [1.0, 4.0]]))
    [spread] = merge((4, 2), [first, second, other]).spreads
    assert (spread.ranks, spread.difference, spread.norm) == ((0, 2), 3.0, 2.0)
    same = merge((4, 2), [first, second, replace(other, tensor=torch.ones(2, 2))])
    assert same.spreads == ()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_replicas_that_are_not_finite_are_infinitely_far(wrong: float) -> None:
    first, second = halves()
    [spread] = merge((4, 2), [first, second, RankShard(2, TOP, torch.full((2, 2), wrong))]).spreads
    assert spread.difference == float("inf")


def test_summands_are_added_and_are_no_overlap() -> None:
    first, second = halves()
    more = replace(first, rank=2, summand=(1,))
    merged = merge((4, 2), [replace(first, summand=(0,)), second, more])
    assert merged.faults == merged.spreads == ()
    assert merged.tensor is not None and merged.tensor[:, 0].tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize(
    ("run", "held"),
    [
        ((0, 4, 0, 1), [0, 1, 2, 3]),
        ((4, 4, 0, 1), [4]),
        ((8, 4, 0, 1), []),
        ((1, 2, 3, 3), [1, 2, 4]),
        ((0, 1, 2, 4), [0, 2, 4]),
    ],
)
def test_a_piece_may_be_kept_without_its_padding(run: Run, held: list[int]) -> None:
    cut = Cut((5, 2), ((run,), ((0, 2, 0, 1),)))
    kept = cut.fitting((len(held), 2))
    assert kept.positions().tolist() == [[2 * each, 2 * each + 1] for each in held]
    assert cut.fitting(cut.shape) is cut
    assert cut.fitting((len(held) + 9, 2)) is cut


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        ([1.0, NAN], [1.0, NAN], False),
        ([1.0, -INF], [1.0, -INF], False),
        ([1.0, INF], [1.0, -INF], True),
        ([1.0, NAN], [NAN, 1.0], True),
        ([1.0, NAN], [2.0, NAN], True),
    ],
)
def test_replicas_with_what_is_not_finite_in_the_same_places_are_the_same(
    first: list[float], second: list[float], differ: bool
) -> None:
    pieces = [
        RankShard(n, whole((2,)), torch.tensor(each)) for n, each in enumerate((first, second))
    ]
    spreads = merge((2,), pieces).spreads
    assert bool(spreads) is differ
    assert all(each.difference > 0 and each.norm < INF for each in spreads)

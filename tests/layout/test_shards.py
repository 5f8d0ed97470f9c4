"""What each rank holds: the same as numpy cuts, and of all ranks together each index once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layout.cut import AXES, flat_over, layout_of, numpy_cut, placements
from tspec.layout.indices import Indices, StridedBlocks, all_of
from tspec.layout.ranks import coordinates
from tspec.layout.shards import UnevenShards, shard
from tspec.layout.sizes import UnknownSize, sizes_of
from tspec.resolve.program.sharding import (
    Dimension,
    DimsDeclaration,
    Modules,
    Placement,
    Product,
    Shape,
    Split,
    Stage,
    Sum,
    Tie,
)

WORLD = prod(size for _, size in AXES)


def numbers(piece) -> list[int]:
    """The indices of a shard in the flattened full tensor, -1 for padding."""
    full = piece.full
    return [-1 if i is None else int(np.ravel_multi_index(i, full)) for i in piece.indices()]


def of(layout, name, rank, kind="param", **sizes):
    return shard(layout, kind, name, rank, sizes_of(layout, sizes))


@settings(max_examples=150, deadline=None)
@given(placements(), st.integers(0, WORLD - 1))
def test_a_rank_holds_what_numpy_cuts(place: Placement, rank: int) -> None:
    piece = of(layout_of(place), "w", rank)
    expected = numpy_cut(place.shape, coordinates(AXES, rank))
    assert piece.shape == expected.shape
    assert numbers(piece) == expected.ravel().tolist()


@settings(max_examples=60, deadline=None)
@given(placements())
def test_pieces_tile_the_tensor(place: Placement) -> None:
    layout = layout_of(place)
    pieces = [of(layout, "w", rank) for rank in range(WORLD)]
    held = Counter(i for piece in pieces for i in numbers(piece) if i >= 0)
    copies = WORLD // prod(size for axis, size in AXES if axis in place.cut_over)
    assert set(held.values()) == {copies}
    assert set(held) == set(range(prod(pieces[0].full)))


@settings(max_examples=60, deadline=None)
@given(placements(), st.sampled_from([name for name, _ in AXES]))
def test_flat_shards_tile_the_piece_of_the_parameter(place: Placement, axis: str) -> None:
    layout = layout_of(place, flat_over(axis, padding=(7, axis)))
    for rank in range(WORLD):
        where = coordinates(AXES, rank)
        mine = of(layout, "w", rank, "state")
        whole = numpy_cut(place.shape, where).ravel()
        ranks = dict(AXES)[axis]
        padded = np.full(-(-len(whole) // (7 * ranks)) * 7 * ranks, -1)
        padded[: len(whole)] = whole
        assert numbers(mine) == np.split(padded, ranks)[where[axis]].tolist()
        assert mine.shape == (len(padded) // ranks,)


def test_fused_qkv_with_grouped_heads() -> None:
    """Two groups of two query heads, one key and one value head each, of size 3, over two ranks."""
    fused = Dimension(
        Product((Dimension(2, (), (Split("tp"),)), Dimension(Sum((2, 2))), Dimension(3)))
    )
    layout = layout_of(Placement("param", "qkv", Shape((fused,))))
    assert [of(layout, "qkv", rank).dimensions[0].runs for rank in (0, 1)] == [
        (StridedBlocks(0, 12),),
        (StridedBlocks(12, 12),),
    ]


def test_queries_keys_and_values_one_after_another() -> None:
    """Four heads of queries, then two of keys and of values, of size 3, over two ranks."""
    parts = tuple(
        Product((Dimension(heads, (), (Split("tp"),)), Dimension(3))) for heads in (4, 2, 2)
    )
    layout = layout_of(Placement("param", "qkv", Shape((Dimension(Sum(parts)),))))
    held = [list(of(layout, "qkv", rank).dimensions[0]) for rank in (0, 1)]
    assert held[0] == [*range(6), *range(12, 15), *range(18, 21)]
    assert held[1] == [*range(6, 12), *range(15, 18), *range(21, 24)]


def test_a_gated_mlp_is_two_blocks_on_each_rank() -> None:
    gated = Dimension(Product((Dimension(2), Dimension(8, (), (Split("tp"),)))))
    layout = layout_of(Placement("param", "fc1", Shape((gated,))))
    held = of(layout, "fc1", 1).dimensions[0]
    assert held == Indices(16, (StridedBlocks(4, 4, 8, 2),), 16)
    assert list(held) == [4, 5, 6, 7, 12, 13, 14, 15]


def test_zigzag_then_a_second_axis() -> None:
    seq = Dimension("seq", (), (Split("cp", "zigzag"), Split("tp")))
    layout = layout_of(Placement("output", "*", Shape((seq,))))
    assert list(of(layout, "x", 0, "output", seq=24).dimensions[0]) == [0, 1, 2, 3]
    assert list(of(layout, "x", 1, "output", seq=24).dimensions[0]) == [20, 21, 22, 23]


def test_padding_is_on_the_last_ranks() -> None:
    vocab = Dimension("vocab", (4, "tp"), (Split("tp"),))
    dims = DimsDeclaration("m", "t", (("vocab", 9),))
    layout = layout_of(Placement("param", "e", Shape((vocab,))), dims=dims)
    last = of(layout, "e", 1)
    assert (last.shape, last.full, sorted(last.dimensions[0].held)) == ((8,), (9,), [8])


def test_stages_ties_and_chunks() -> None:
    layout = layout_of(
        Placement("param", "embedding.weight", Shape((Dimension(4),))),
        Placement("param", "layers.*.w", Shape((Dimension(4),))),
        axes=(("pp", 2),),
        ties=(Tie("embedding.weight", "head.weight"),),
        stages=(
            Stage(0, 0, (Modules("embedding"), Modules("layers.", (0, 0)))),
            Stage(1, 0, (Modules("layers.", (1, 1)),)),
            Stage(0, 1, (Modules("layers.", (2, 2)),)),
            Stage(1, 1, (Modules("layers.", (3, 3)), Modules("head"))),
        ),
    )
    names = ("embedding.weight", "layers.0.w", "layers.1.w", "layers.2.w", "head.weight")
    holders = {name: [of(layout, name, r) is not None for r in (0, 1)] for name in names}
    assert list(holders.values()) == [
        [True, False],
        [True, False],
        [False, True],
        [True, False],
        [False, True],
    ]
    assert of(layout, "layers.2.w", 0).stage.chunk == 1


def test_one_rank_along_the_pipeline_has_all_stages() -> None:
    layout = layout_of(
        Placement("param", "layers.*.w", Shape((Dimension(4),))),
        axes=(("pp", 1),),
        stages=(
            Stage(0, 0, (Modules("layers.", (0, 0)),)),
            Stage(1, 0, (Modules("layers.", (1, 1)),)),
        ),
    )
    found = [of(layout, f"layers.{number}.w", 0) for number in range(3)]
    assert [each and each.stage.number for each in found] == [0, 1, None]


def test_gradients_are_cut_as_parameters_unless_a_place_says_otherwise() -> None:
    cut, whole = Shape((Dimension(4, (), (Split("tp"),)),)), Shape((Dimension(4),))
    layout = layout_of(
        Placement("param", "*", cut), Placement("grad", "norm", whole, partial=("tp",))
    )
    assert of(layout, "fc", 1, "grad").shape == (2,)
    assert of(layout, "norm", 1, "grad").partial == ("tp",)
    assert of(layout, "fc", 1, "output") is None


def test_what_is_not_known_or_not_even_is_said() -> None:
    place = Placement("param", "w", Shape((Dimension("seq", (), (Split("cp"),)),)))
    with pytest.raises(UnknownSize, match="seq"):
        of(layout_of(place), "w", 0)
    with pytest.raises(UnevenShards, match="10 is not divisible into 3 parts over `cp`"):
        of(layout_of(place), "w", 0, seq=10)


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_places_of_products_are_taken_in_order(outer: int, inner: int, data: st.DataObject) -> None:
    whole = list(range(outer * inner))
    first = data.draw(st.integers(0, inner - 1))
    last = data.draw(st.integers(first + 1, inner))
    held = all_of(outer).times(all_of(inner).take(first, last))
    expected = [i for i in whole if first <= i % inner < last]
    assert list(held) == expected
    begin = data.draw(st.integers(0, len(expected)))
    end = data.draw(st.integers(begin, len(expected)))
    assert list(held.take(begin, end)) == expected[begin:end]
    assert held.take(begin, end).number == end - begin
    assert [index in held for index in whole] == [index in expected for index in whole]
    real = data.draw(st.integers(0, len(whole)))
    part = held.take(begin, end)
    outside = [i for i in expected if i not in list(part) and i < real]
    assert replace(held, real=real).not_in(part) == min(outside, default=None)
    assert part.not_in(held) is None
    assert replace(held, real=real).padding == sum(index >= real for index in expected)

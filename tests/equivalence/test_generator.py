"""Generated numbers: each rank's shard is the cut of the full tensor, and they look random."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layout.cut import AXES, flat_over, layout_of, numpy_cut, placements
from tspec.equivalence.cut import Cut, whole
from tspec.equivalence.cuts import cut_of, sized
from tspec.equivalence.generator import bits, key, signs, uniform, weights
from tspec.layout.ranks import coordinates
from tspec.layout.shards import shard
from tspec.layout.sizes import sizes_of
from tspec.resolve.program.sharding import Dimension, Placement, Product, Shape, Split

WORLD = prod(size for _, size in AXES)


@settings(max_examples=100, deadline=None)
@given(placements(), st.integers(0, WORLD - 1), st.integers(0, 2**40))
def test_a_ranks_weights_are_the_cut_of_the_full_tensor(
    place: Placement, rank: int, seed: int
) -> None:
    layout = layout_of(place)
    piece = shard(layout, "param", "w", rank, sizes_of(layout))
    mine = weights(seed, "w", cut_of(piece), 1.0)
    full = weights(seed, "w", whole(piece.full), 1.0).numpy().ravel()
    places = numpy_cut(place.shape, coordinates(AXES, rank))
    assert mine.shape == places.shape
    assert np.array_equal(mine.numpy(), np.where(places < 0, 0.0, full[places]))


@settings(max_examples=50, deadline=None)
@given(placements(), st.integers(0, WORLD - 1), st.sampled_from([name for name, _ in AXES]))
def test_a_flat_piece_is_that_of_the_flattened_piece(
    place: Placement, rank: int, axis: str
) -> None:
    layout = layout_of(place, flat_over(axis, padding=(7, axis)))
    piece = shard(layout, "state", "w", rank, sizes_of(layout))
    expected = [
        -1 if i is None else int(np.ravel_multi_index(i, piece.full)) for i in piece.indices()
    ]
    assert cut_of(piece).positions().tolist() == expected
    assert cut_of(piece).shape == piece.shape


def test_a_cut_is_handed_to_another_process_as_json() -> None:
    cut = Cut((4, 6), (((0, 1, 2, 2),), ((3, 3, 0, 1),)), (1, 5))
    assert Cut.of_json(cut.as_json()) == cut
    assert cut.positions().tolist() == [4, 5, 15, 16]


def test_numbers_are_those_of_splitmix64() -> None:
    # The first outputs of the published generator with state 0.
    said = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [each % 2**64 for each in bits(0, torch.arange(3)).tolist()] == said


def test_numbers_differ_by_seed_name_and_place_and_fill_their_range() -> None:
    places = torch.arange(100_000)
    one = uniform(key(1, "param", "a"), places)
    assert -1 <= one.min() < -0.999 and 0.999 < one.max() < 1
    assert one.mean().abs() < 0.01 and abs(one.var() - 1 / 3) < 0.01
    assert (one[1:] * one[:-1]).mean().abs() < 0.01
    for other in (key(2, "param", "a"), key(1, "param", "b"), key(1, "parama", "")):
        assert (one * uniform(other, places)).mean().abs() < 0.01
    assert signs(key(1, "a"), places).mean().abs() < 0.02
    assert set(signs(key(1, "a"), places).tolist()) == {1.0, -1.0}


@pytest.mark.parametrize("shape", [(64, 400), (8, 20, 5, 5)])
def test_matrices_keep_the_size_of_what_flows_through_them(shape: tuple[int, ...]) -> None:
    found = weights(7, "w", whole(shape))
    assert found.var().item() == pytest.approx(1 / prod(shape[1:]), rel=0.05)


def test_vectors_are_spread_around_what_filled_them() -> None:
    found = weights(7, "norm.weight", whole((5000,)), 1.0)
    assert 0.9 <= found.min() < found.max() <= 1.1


def test_sizes_of_the_input_are_those_of_the_reference() -> None:
    shape = Shape((Dimension("batch", (), (Split("dp"),)), Dimension("hidden")))
    layout = layout_of(Placement("output", "*", shape))
    sizes = sized(layout, "output", "fc", (6, 4), sizes_of(layout))
    assert sizes.sizes == {"batch": 6, "hidden": 4}
    fixed = replace(sizes_of(layout), sizes={"hidden": 8})
    assert sized(layout, "output", "fc", (6, 4), fixed).sizes == {"batch": 6, "hidden": 8}


def test_a_size_of_the_input_is_found_in_a_product() -> None:
    """As every second sample is on a rank."""
    samples = Product((Dimension("batch"), Dimension("parts", (), (Split("dp"),))))
    layout = layout_of(Placement("output", "*", Shape((Dimension(samples), Dimension("hidden")))))
    known = replace(sizes_of(layout), sizes={"parts": 2})
    sizes = sized(layout, "output", "fc", (6, 4), known)
    assert sizes.sizes == {"batch": 3, "hidden": 4, "parts": 2}
    two = replace(sizes_of(layout), sizes={})
    assert sized(layout, "output", "fc", (6, 4), two).sizes == {"hidden": 4}

"""Coordinates of ranks: which axes are shown, and in which words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tspec.report.coordinates import coordinates, in_words

Groups = dict[int, dict[str, tuple[int, ...]]]


def grid(**sizes: int) -> Groups:
    """The groups of a job whose ranks count through axes, the innermost first, as Megatron's do."""
    world = 1
    strides: dict[str, int] = {}
    for axis, size in sizes.items():
        strides[axis], world = world, world * size
    groups: Groups = {}
    for rank in range(world):
        groups[rank] = {"world": tuple(range(world))}
        for axis, size in sizes.items():
            first = rank - rank // strides[axis] % size * strides[axis]
            groups[rank][axis] = tuple(first + n * strides[axis] for n in range(size))
    return groups


def test_the_outermost_axis_comes_first_and_axes_of_one_rank_are_left_out() -> None:
    at = coordinates(grid(tp=2, cp=1, dp=2, pp=2))
    assert list(at[5].items()) == [("pp", 1), ("dp", 0), ("tp", 1)]


def test_an_axis_that_tells_no_ranks_apart_is_left_out() -> None:
    """`model` holds the ranks of tp and pp together, and `embedding` the first and the last stage."""
    groups = grid(tp=2, pp=2)
    for rank, of_rank in groups.items():
        of_rank["model"] = (0, 1, 2, 3)
        of_rank["embedding"] = of_rank["pp"]
        assert coordinates(groups)[rank].keys() == {"pp", "tp"}


def test_a_job_with_data_parallel_ranks_only_has_none() -> None:
    assert coordinates(grid(dp=4)) == {}
    assert coordinates(grid(tp=2))[1] == {"tp": 1}


def test_an_axis_that_some_ranks_lack_is_left_out_for_those() -> None:
    groups = grid(tp=2, pp=2)
    del groups[3]["tp"]
    at = coordinates(groups)
    assert at[3] == {"pp": 1}
    assert in_words((2, 3), at) == "ranks 2 (pp 1, tp 0), 3 (pp 1)"


AT = coordinates(grid(tp=2, pp=4))


@pytest.mark.parametrize(
    ("ranks", "at", "said"),
    [
        ((3,), AT, "rank 3 (pp 1, tp 1)"),
        ((2, 3), AT, "ranks 2, 3 (pp 1, tp 0-1)"),
        ((0, 6), AT, "ranks 0, 6 (pp 0 and 3, tp 0)"),
        ((0, 3), AT, "ranks 0 (pp 0, tp 0), 3 (pp 1, tp 1)"),
        ((0, 9), AT, "ranks 0 (pp 0, tp 0), 9"),
        ((0, 1), {}, "ranks 0, 1"),
        ((4,), {}, "rank 4"),
    ],
)
def test_words(ranks: tuple[int, ...], at: Mapping[int, Mapping[str, int]], said: str) -> None:
    assert in_words(ranks, at) == said

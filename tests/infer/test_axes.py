"""Drafts speak of the groups of a job, and of the world only where these do not say all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tspec.infer import STANDARD, vocabulary
from tspec.infer.axes import Partition, joined, telling

TORCH = vocabulary(STANDARD).groups
MEGATRON = vocabulary((*STANDARD, "std.megatron")).groups

WHOLE = {2: [[0, 1]], 4: [[0, 1, 2, 3]], 8: [list(range(8))]}


def seen(*runs: tuple[int, dict[str, list[list[int]]]]) -> dict[str, dict[int, Partition]]:
    """The groups of some runs, each of so many ranks."""
    found: dict[str, dict[int, Partition]] = {}
    for run, (ranks, axes) in enumerate(runs):
        for axis, groups in {"world": WHOLE[ranks], **axes}.items():
            found.setdefault(axis, {})[run] = joined(map(frozenset, groups))
    return found


TP2_DP2 = (4, {
    "tp": [[0, 1], [2, 3]], "dp": [[0, 2], [1, 3]], "pp": [[0], [1], [2], [3]],
    "model": [[0, 1], [2, 3]], "expert_dp": [[0, 1, 2, 3]], "embedding": [[0], [1], [2], [3]],
})  # fmt: skip
TP2_PP2 = (4, {
    "tp": [[0, 1], [2, 3]], "dp": [[0], [1], [2], [3]], "pp": [[0, 2], [1, 3]],
    "model": [[0, 1, 2, 3]], "expert_dp": [[0, 1], [2, 3]], "embedding": [[0, 2], [1, 3]],
})  # fmt: skip
"""The groups of Megatron's ranks in two jobs."""


def test_groups_of_a_framework_are_spoken_of_and_not_the_world() -> None:
    assert telling(MEGATRON, seen(TP2_DP2, TP2_PP2)) == ("dp", "tp", "pp")
    assert telling(MEGATRON, seen(TP2_DP2)) == ("dp", "tp")
    only = (2, {"tp": WHOLE[2], "model": WHOLE[2], "expert_dp": WHOLE[2], "dp": [[0], [1]]})
    assert telling(MEGATRON, seen(only)) == ("tp",)


def test_experts_have_groups_of_their_own() -> None:
    """Four ranks read other data; pairs hold other experts, and other pairs copies of them."""
    job = {"dp": WHOLE[4], "ep": [[0, 1], [2, 3]], "expert_dp": [[0, 2], [1, 3]]}
    assert telling(MEGATRON, seen((4, job))) == ("dp", "ep", "expert_dp")


def test_a_job_that_knows_one_group_is_told_of_the_world() -> None:
    assert telling(TORCH, seen((2, {"dp": WHOLE[2]}))) == ("world",)
    assert telling(TORCH, seen((2, {}))) == ("world",)
    mesh = {"dp": [[0, 2], [1, 3]], "tp": [[0, 1], [2, 3]]}
    assert telling(TORCH, seen((4, mesh))) == ("world", "dp", "tp")


def test_an_axis_that_is_the_world_in_some_runs_only_is_spoken_of() -> None:
    runs = seen((2, {"tp": WHOLE[2], "dp": [[0], [1]]}), (2, {"tp": [[0], [1]], "dp": WHOLE[2]}))
    assert telling(MEGATRON, runs) == ("dp", "tp")


def test_a_rank_alone_is_on_no_axis() -> None:
    alone = {"world": {0: joined([frozenset({0})])}, "dp": {0: joined([frozenset({0})])}}
    assert telling(TORCH, alone) == telling(MEGATRON, alone) == ()


@given(st.lists(st.frozensets(st.integers(0, 9), min_size=1)))
def test_parts_are_joined_where_they_overlap(parts: list[frozenset[int]]) -> None:
    groups = joined(parts)
    assert sum(map(len, groups)) == len(frozenset().union(*groups))
    for part in parts:
        assert len(part) == 1 or sum(part <= group for group in groups) == 1
        assert all(part <= group or not part & group for group in groups)
    assert frozenset().union(*groups) <= frozenset().union(*parts)

"""The ranks that a rule looks across in a job, where each rank knows its own groups alone."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from tspec.runtime.windows import RuleWindow

SIZES = {"tp": 2, "dp": 3, "pp": 2}
"""A grid of twelve ranks, of which the first axis changes fastest."""
RANKS = range(12)


@dataclass(frozen=True)
class Instant:
    """A moment on one rank of the grid."""

    rank: int
    seq: int = 0

    @property
    def source(self) -> Any:
        return SimpleNamespace(rank=self.rank, past=None)

    def ranks(self, axis: str) -> tuple[int, ...] | None:
        """The rank's own group on an axis."""
        stride = {"tp": 1, "dp": 2, "pp": 6}.get(axis)
        if stride is None:
            return None
        first = self.rank - self.rank // stride % SIZES[axis] * stride
        return tuple(first + place * stride for place in range(SIZES[axis]))


def group(rank: int, *axes: str) -> tuple[int, ...]:
    window: Any = RuleWindow(Instant(rank), log=[])  # type: ignore[arg-type]
    return tuple(window.group(axes, ", ".join(axes))[0])


@pytest.mark.parametrize(
    ("axes", "size"), [(("tp", "pp"), 4), (("tp", "dp"), 6), (("dp", "tp", "pp"), 12)]
)
def test_ranks_of_several_axes_agree_on_whom_they_look_across(
    axes: tuple[str, ...], size: int
) -> None:
    groups = {rank: group(rank, *axes) for rank in RANKS}
    for rank, found in groups.items():
        assert rank in found and len(found) == size
        assert {groups[other] for other in found} == {found}


def test_an_axis_that_the_job_has_not_adds_nobody() -> None:
    assert group(3, "tp", "cp") == group(3, "tp") == (2, 3)
    assert group(3, "cp", "ep") == (3,)

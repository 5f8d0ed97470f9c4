"""What is known of one tensor: which of its indices each rank holds, or why that is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tspec.resolve.program.sharding import Axes

Numbers = tuple[int, ...]
"""The indices of one dimension, in the rank's order; from `full` on: padding."""


@dataclass(frozen=True, slots=True)
class ShardIndices:
    """A tensor of shape `full`; `held` has for each rank the indices of each dimension.

    A rank that has none of it is not in `held`. Over the axes of `partial` ranks hold summands.
    `chunk` is the virtual stage of the first pipeline stage that has it. `note` says what was assumed.
    """

    name: str
    full: tuple[int, ...]
    held: Mapping[int, tuple[Numbers, ...]] = field(default_factory=dict)
    partial: tuple[str, ...] = ()
    note: str = ""
    chunk: int = 0


@dataclass(frozen=True, slots=True)
class Unknown:
    """A tensor whose cut was not found."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """The tensors of a job, and its mesh."""

    axes: Axes
    tensors: tuple[ShardIndices | Unknown, ...]

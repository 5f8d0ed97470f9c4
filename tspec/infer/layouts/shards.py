"""The indices of one tensor that each rank holds, or the reason why they are unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tspec.resolve.program.sharding import Axes
from tspec.values import listed

Numbers = tuple[int, ...]
"""The indices of one dimension, in the rank's order. Indices from `full` on are padding."""


@dataclass(frozen=True, slots=True)
class ShardIndices:
    """A tensor of shape `full`; `held` has for each rank the indices of each dimension.

    A rank without a part of the tensor is not in `held`. Over the axes of `partial`, ranks hold
    partial sums. `chunk` is the virtual stage of the first pipeline stage that holds the tensor.
    `note` states the assumptions. `copies` are the names under which ranks of other stages hold it,
    with the stage and the chunk. A tensor of experts is sharded over the axes of experts.
    """

    name: str
    full: tuple[int, ...]
    held: Mapping[int, tuple[Numbers, ...]] = field(default_factory=dict)
    partial: tuple[str, ...] = ()
    note: str = ""
    chunk: int = 0
    copies: tuple[tuple[str, int, int], ...] = ()
    of_experts: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A tensor whose cut was not found."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to know about several tensors. `*` in a name stands for the numbers of layers or
    experts, `tensors` counts them all.
    """

    names: tuple[str, ...]
    said: str
    tensors: int = 1

    def text(self, most: int | None = None) -> str:
        """Names and what is said; with `most`, no more names than that."""
        names = [f"`{each}`" for each in self.names]
        return f"{listed(names, len(names) if most is None else most)}: {self.said}"


@dataclass(frozen=True, slots=True)
class Found:
    """The tensors of a job, its mesh, and the axes of experts for the same ranks, if it has any."""

    axes: Axes
    tensors: tuple[ShardIndices | Unknown, ...]
    expert_axes: Axes = ()

    def axes_of(self, pieces: ShardIndices) -> Axes:
        """The axes over which a tensor is cut."""
        return self.expert_axes if pieces.of_experts else self.axes

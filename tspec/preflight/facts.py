"""The facts about one rank of a dry run, as plain values that one process writes and another reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tspec.values import with_tuples

Axes = tuple[tuple[str, int], ...]
"""Axes with their numbers of ranks, the axis that changes fastest first."""

Block = tuple[tuple[int, ...], tuple[int, ...]]
"""Offset in the full tensor, and shape."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A DTensor's placement on one axis of its mesh. `dim` is the sharded dimension.

    `strided`: the dimension was sharded over a later axis before, as `fully_shard` does after a
    plan.
    """

    axis: str
    how: Literal["shard", "strided", "replicate", "partial"]
    dim: int = 0


@dataclass(frozen=True, slots=True)
class ExpertPlace:
    """The place of one expert's tensor in the tensor `all` of the layer's `count` experts."""

    all: str
    number: int
    count: int


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """A parameter on a rank, or an input or output of a module.

    `shape` is the shape on the rank. `placements` are a DTensor's. `blocks` are those of
    megatron-core's sharded state dictionary, in the rank's order. A tensor with neither is a plain
    one. `chunk` is the virtual stage that holds it. `copy` is the name under which the rank holds a
    tied tensor of another stage. `expert` is the place of a tensor that belongs to one expert.
    """

    name: str
    shape: tuple[int, ...]
    full: tuple[int, ...]
    bytes: int
    placements: tuple[Placed, ...] = ()
    blocks: tuple[Block, ...] = ()
    chunk: int = 0
    copy: str = ""
    expert: ExpertPlace | None = None


@dataclass(frozen=True, slots=True)
class Activation:
    """The first tensor that a module is given, or returns, in its first call. The tensor has the module's name."""

    kind: Literal["input", "output"]
    tensor: TensorFacts


@dataclass(frozen=True, slots=True)
class Reduction:
    """A gradient was added up over ranks: by DDP, `fully_shard`, or a collective of the script on it."""

    parameter: str
    ranks: tuple[int, ...]
    by: str


@dataclass(frozen=True, slots=True)
class Collective:
    """Calls of one collective over one group, from one module or pass."""

    op: str
    ranks: tuple[int, ...]
    where: str
    calls: int
    elements: int


@dataclass(frozen=True, slots=True)
class Summand:
    """A partial sum in the gradient of `parameter`: the product of an activation's gradient with a
    weight leaves it.

    The product sums over a dimension of the weight. `over` are the groups that have reduced it
    since, `twice` the groups that reduced it again immediately.
    """

    weight: str
    dimension: int
    parameter: str
    over: tuple[tuple[int, ...], ...] = ()
    twice: tuple[tuple[int, ...], ...] = ()


def adds_up(op: str) -> bool:
    """True if a collective of that name sums tensors of ranks."""
    return any(word in op for word in ("allreduce", "all_reduce", "reduce_scatter"))


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """The number of calls of a module, and the name of its class."""

    name: str
    kind: str
    calls: int


@dataclass(frozen=True, slots=True)
class RankFacts:
    """A rank's first step.

    `activations` are in the order of the run. `updated` is true if the step had an update, so that
    gradients were complete. `axes` are those of its device mesh, or of megatron-core's groups.
    `expert_axes` are those over which experts are sharded, another factorisation of the same ranks.
    `memory` has bytes by kind. If the script ended because an object of another rank never came, `waits` names that rank.
    """

    rank: int
    world: int
    updated: bool
    axes: Axes
    parameters: tuple[TensorFacts, ...]
    reductions: tuple[Reduction, ...]
    collectives: tuple[Collective, ...]
    modules: tuple[ModuleFacts, ...]
    activations: tuple[Activation, ...]
    memory: Mapping[str, int]
    summands: tuple[Summand, ...] = ()
    expert_axes: Axes = ()
    waits: str = ""

    def write(self, file: Path) -> None:
        """Write it as JSON."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(file: Path) -> RankFacts:
        """Read the facts that `write` wrote."""
        said: dict[str, Any] = with_tuples(json.loads(file.read_text(encoding="utf-8")))
        return RankFacts(
            **{
                **said,
                "parameters": tuple(map(_tensor, said["parameters"])),
                "activations": tuple(
                    Activation(each["kind"], _tensor(each["tensor"]))
                    for each in said["activations"]
                ),
                "reductions": tuple(Reduction(**each) for each in said["reductions"]),
                "modules": tuple(ModuleFacts(**each) for each in said["modules"]),
                "summands": tuple(Summand(**each) for each in said["summands"]),
                "collectives": tuple(Collective(**each) for each in said["collectives"]),
            }
        )


def facts_file(folder: Path, rank: int) -> Path:
    """The file of a rank's facts, in the folder of a dry run."""
    return folder / f"rank-{rank}.json"


def _tensor(said: dict[str, Any]) -> TensorFacts:
    placements = tuple(Placed(**each) for each in said["placements"])
    expert = said["expert"] and ExpertPlace(**said["expert"])
    return TensorFacts(**{**said, "placements": placements, "expert": expert})

"""Builds the full tensor from the shards of all ranks, and reports shards that do not fit together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, prod, ulp
from typing import Literal, TypeVar

import torch
from torch import Tensor

from tspec.equivalence.cut import Cut
from tspec.equivalence.recording import Sketched
from tspec.equivalence.sketch import length
from tspec.layout.text import ranks_text

FaultKind = Literal[
    "missing",
    "stage",
    "extra",
    "shape",
    "omission",
    "overlap",
    "replicas",
    "layout",
    "skipped",
    "norm",
    "copy",
    "recomputed",
]
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class RankShard:
    """One rank's shard of a tensor by the layout, and the recorded tensor; None if the rank
    recorded none.

    If `sketched` is set, `tensor` is a sketch of a tensor with that shape. Ranks with equal `cut`
    but different `summand` hold summands; ranks with equal `summand` too hold replicas.
    """

    rank: int
    cut: Cut
    tensor: Tensor | None
    summand: tuple[int, ...] = ()
    sketched: Sketched | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rank's tensor, also where `tensor` is a sketch of it."""
        assert self.tensor is not None
        return tuple(self.tensor.shape) if self.sketched is None else self.sketched.shape


@dataclass(frozen=True, slots=True)
class MergeFault:
    """Shards that do not make a tensor, a norm that is not that of the gradients, or a tensor that
    does not equal another one of its rank.
    """

    kind: FaultKind
    message: str


@dataclass(frozen=True, slots=True)
class Spread:
    """The distance of a shard's replicas from the first of them, as Frobenius norms.

    The norm of the shard is that of its finite elements.
    """

    ranks: tuple[int, ...]
    difference: float
    norm: float


@dataclass(frozen=True, slots=True)
class Merged:
    """A full tensor (None if shards are missing), the faults of its shards, and replicas that
    differ.

    The first replica counts. Where replicas differ, `last` is the tensor made of the last ones, and
    `summed` the one of all replicas as summands.
    """

    tensor: Tensor | None
    faults: tuple[MergeFault, ...] = ()
    spreads: tuple[Spread, ...] = ()
    last: Tensor | None = None
    summed: Tensor | None = None


def merge(
    full: tuple[int, ...], shards: Sequence[RankShard], absent: str = "recorded no such tensor"
) -> Merged:
    """The tensor of shape `full` in float64 that shards make, or its sketch if they are sketches.

    Summands are added in the order of their ranks. Of several replicas, the first counts. `absent`
    is the text for ranks without a shard.
    """
    broken = tuple(_unfit(shards, absent))
    if broken:
        return Merged(None, broken)
    sketched = any(each.sketched for each in shards)
    shape = (length(full),) if sketched else full
    found = torch.zeros(shape, dtype=torch.float64).flatten()
    held = torch.zeros(prod(full), dtype=torch.int64)
    last, summed = torch.zeros_like(found), torch.zeros_like(found)
    spreads: list[Spread] = []
    for cut, of_cut in _grouped(shards, lambda each: each.cut):
        positions = cut.positions()
        real = positions >= 0
        at = torch.arange(len(found)) if sketched else positions[real]
        for _, replicas in _grouped(of_cut, lambda each: each.summand):
            first, *others = (
                each.tensor.double() if sketched else each.tensor.double()[real]
                for each in replicas
                if each.tensor is not None
            )
            found.index_add_(0, at, first)
            last.index_add_(0, at, others[-1] if others else first)
            for each in (first, *others):
                summed.index_add_(0, at, each)
            if _differ(replicas) or any(bool(_apart(other, first).any()) for other in others):
                spreads.append(_spread(replicas, first, others))
        held.index_add_(0, positions[real], torch.ones_like(positions[real]))
    faults = tuple(_holes(full, held))
    merged = Merged(found.view(shape), faults, tuple(spreads))
    return replace(merged, last=last.view(shape), summed=summed.view(shape)) if spreads else merged


def _unfit(shards: Sequence[RankShard], absent: str) -> Iterator[MergeFault]:
    """Shards that were not recorded, or that have another shape than they are to have."""
    missing = [each.rank for each in shards if each.tensor is None]
    if missing:
        yield MergeFault("missing", f"{ranks_text(missing)} {absent}")
    others = [each for each in shards if each.tensor is not None and each.shape != each.cut.shape]
    for (has, wanted), alike in _grouped(others, lambda each: (each.shape, each.cut.shape)):
        ranks = [each.rank for each in alike]
        said = f"{ranks_text(ranks)} {'has' if len(ranks) == 1 else 'have'} {list(has)}"
        yield MergeFault("shape", f"{said}, and the layout says {list(wanted)}")


def _differ(replicas: Sequence[RankShard]) -> bool:
    """True if the digests of sketched replicas differ."""
    return len({each.sketched.digest for each in replicas if each.sketched}) > 1


def _spread(replicas: Sequence[RankShard], first: Tensor, others: Sequence[Tensor]) -> Spread:
    """The distance of the replicas from the first one."""
    ranks = tuple(each.rank for each in replicas)
    furthest = max(
        float((other - first)[_apart(other, first)].norm().nan_to_num(inf, inf)) for other in others
    )
    norm = float(first[first.isfinite()].norm())
    return Spread(ranks, max(furthest, ulp(norm)), norm)


def _apart(left: Tensor, right: Tensor) -> Tensor:
    """The elements that differ. Two that are not a number do not, nor do equal infinities."""
    return (left != right) & ~(left.isnan() & right.isnan())


def _holes(full: tuple[int, ...], held: Tensor) -> Iterator[MergeFault]:
    """Faults for elements that no rank holds, and for elements that several ranks hold without
    being replicas.
    """
    if bool((held == 0).any()):
        yield MergeFault("omission", f"no rank holds {_elements(full, held == 0)}")
    if bool((held > 1).any()):
        where = _elements(full, held > 1)
        yield MergeFault("overlap", f"ranks that are no replicas hold {where}")


def _elements(full: tuple[int, ...], chosen: Tensor) -> str:
    """The first of some elements, and the number of others."""
    first = torch.unravel_index(chosen.nonzero()[0, 0], full)
    others = int(chosen.sum()) - 1
    index = f"element ({', '.join(str(int(each)) for each in first)})"
    return f"{index} and {others} more" if others else index


def _grouped(
    shards: Iterable[RankShard], by: Callable[[RankShard], K]
) -> list[tuple[K, list[RankShard]]]:
    """Group shards by a key, in the order of the first shard with each key."""
    found: dict[K, list[RankShard]] = {}
    for each in shards:
        found.setdefault(by(each), []).append(each)
    return list(found.items())

"""The shard of a tensor that each rank holds by the layout, to merge tensors and to hand out shards
of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

import torch
from torch import Tensor

from tspec.equivalence.cut import Cut, whole
from tspec.equivalence.cuts import cut_of, sized
from tspec.equivalence.merge import Merged, MergeFault, RankShard, merge
from tspec.equivalence.recording import UPDATED, Recording, TensorName
from tspec.equivalence.sides import Trial
from tspec.layout.experts import Expert, expert_of
from tspec.layout.places import placement_of, tied_to
from tspec.layout.ranks import coordinates_of
from tspec.layout.shards import Shard, UnevenShards, shard
from tspec.layout.sizes import UnknownSize, input_size
from tspec.layout.text import ranks_text
from tspec.resolve.program.sharding import Placement, Shape, TensorKind, splits

LAYOUT_KINDS: Mapping[str, TensorKind] = {
    "inputs": "input",
    "input_grads": "input_grad",
    "outputs": "output",
    "output_grads": "output_grad",
    "param_grads": "grad",
    "params": "param",
    "buffers": "buffer",
    "states": "state",
}
"""The layouts' words for compared tensors."""


def merge_by_layout(
    trial: Trial,
    name: TensorName,
    full: tuple[int, ...],
    held: Sequence[Tensor | None],
    ranks: Sequence[Recording],
    summand: frozenset[str] = frozenset(),
) -> Merged | None:
    """Merge the tensors `held` by `ranks`; None if the layout does not say how the tensor is cut.

    `summand` are further axes over which ranks hold summands of it.
    """
    if name.kind == "losses":
        losses = [each.double() for each in held if each is not None]
        if not losses:
            return Merged(None, (MergeFault("missing", "no rank recorded it"),))
        return Merged(torch.stack(losses).mean(0))
    if name.kind == "gradient_norms":  # the norm over all shards, which each rank holds
        return merge(full, [RankShard(rank, whole(full), each) for rank, each in enumerate(held)])
    try:
        rank_shards = shards_held(trial, name, full, summand)
    except (UnevenShards, UnknownSize) as wrong:
        return Merged(None, (MergeFault("layout", f"its shards have no size: {wrong}"),))
    if not rank_shards:
        return None
    shape = rank_shards[0].cut.full
    if shape != full:
        if name.kind == "states":  # it has no number for each element, as Adafactor's
            return None
        says = (
            f"the layout says {list(shape)}{_by(trial, name)}, and the reference has {list(full)}"
        )
        return Merged(None, (MergeFault("layout", says),))
    found = []
    for each in rank_shards:
        recorded = ranks[each.rank]
        if name.kind == "states" and name.subject in recorded.elsewhere:
            continue
        part = recorded.parts.get(name.subject) if name.kind in UPDATED else None
        cut = each.cut if part is None else replace(each.cut, flat=part)
        if part is None or part[0] < part[1]:
            of = next(
                (recorded.sketched[of] for of in names_of(trial, name) if of in recorded.sketched),
                None,
            )
            rank_shard = replace(each, cut=cut, tensor=held[each.rank], sketched=of)
            fits = rank_shard.tensor is None or part is not None
            found.append(
                rank_shard if fits else replace(rank_shard, cut=cut.fitting(rank_shard.shape))
            )
    elsewhere = _on_another_stage(trial, found, held)
    if elsewhere is not None:
        return Merged(None, (elsewhere,))
    missing = [ranks[each.rank] for each in found if each.tensor is None]
    if name.kind == "param_grads" and all(_has_parameter(name, each) for each in missing):
        return merge(full, found, absent="had no gradient of it at the update")
    return merge(full, found)


def _on_another_stage(
    trial: Trial, rank_shards: Sequence[RankShard], held: Sequence[Tensor | None]
) -> MergeFault | None:
    """The fault that a tensor was recorded on another pipeline stage than the layout's. None if it
    was not.

    A rank may have modules of other stages besides its own.
    """

    def stage(rank: int) -> int:
        return coordinates_of(trial.layout.mesh, rank).get("pp", 0)

    missing = [each.rank for each in rank_shards if each.tensor is None]
    stages = {stage(rank) for rank in missing}
    by_layout = {stage(each.rank) for each in rank_shards}
    having = [
        rank for rank, each in enumerate(held) if each is not None and stage(rank) not in by_layout
    ]
    if not missing or not having:
        return None
    there, here = (
        " and ".join(map(str, sorted(each))) for each in (set(map(stage, having)), stages)
    )
    have = "has" if len(having) == 1 else "have"
    says = f"{ranks_text(having)} of stage {there} {have} it, and the layout has it on stage {here}"
    return MergeFault("stage", f"{says}, where {ranks_text(missing)} recorded none")


def _has_parameter(name: TensorName, recorded: Recording) -> bool:
    """True if a rank has the parameter of a gradient."""
    return replace(name, kind="params") in recorded.tensors


def _by(trial: Trial, name: TensorName) -> str:
    """The place of the layout that a tensor has."""
    place = placement(trial, name)
    return "" if place is None else f' by `{place.kind} "{place.pattern}"`'


def placement(trial: Trial, name: TensorName) -> Placement | None:
    """The place of the layout that a tensor has, if it has one."""
    kind = LAYOUT_KINDS.get(name.kind)
    known = trial.sizes.known
    return None if kind is None else placement_of(trial.layout, kind, name.subject, known)


def summand_axes(
    trial: Trial, name: TensorName, data: frozenset[str]
) -> tuple[frozenset[str], ...]:
    """Axes over which ranks may hold summands of a gradient. The layout places the tensor only,
    which all these ranks have.

    Each set is one possibility. Over the axes of `data` each rank has the gradient of its own loss.
    For an input it may also have only the part that comes from its own shard of a weight.
    """
    place = placement(trial, name)
    if place is None or place.kind not in ("input", "output"):
        return ()
    own_loss = data - {*place.cut_over, *place.partial}
    every = frozenset(trial.layout.mesh.all_axes)
    possible = (own_loss, every, every - data) if name.kind == "input_grads" else (own_loss,)
    return tuple(dict.fromkeys(each for each in possible if each))


def data_axes(trial: Trial, reference: Recording) -> frozenset[str]:
    """The axes over which the last output with a place is cut along sizes of the input. The loss is
    made from that output.

    All axes if the layout places no output.
    """
    known = trial.sizes.known
    for name in reversed(tuple(reference.tensors)):
        place = placement_of(trial.layout, "output", name.name, known)
        if name.kind == "outputs" and place is not None and isinstance(place.shape, Shape):
            return frozenset(
                split.axis
                for each in place.shape.dimensions
                if input_size(each, trial.sizes) is not None
                for split in splits(Shape((each,)))
            )
    return frozenset(trial.layout.mesh.all_axes)


def shards_held(
    trial: Trial, name: TensorName, full: tuple[int, ...], summand: frozenset[str] = frozenset()
) -> list[RankShard]:
    """The shards that the layout gives each rank; empty without a place. `summand` are further axes
    over which ranks hold summands.

    Raises UnevenShards, UnknownSize.
    """
    found = []
    for rank, each in shards_of(trial, name, full):
        at = coordinates_of(trial.layout.mesh, rank)
        place = tuple(at[axis] for axis in sorted({*each.partial, *summand}))
        found.append(RankShard(rank, cut_of(each), None, place))
    return found


def indivisible(trial: Trial, name: TensorName, full: tuple[int, ...]) -> str:
    """Why a tensor cannot be cut into equal shards: a size of the input does not divide, as in a
    last batch. Empty if it can.
    """
    place = placement(trial, name)
    if (
        place is None
        or not isinstance(place.shape, Shape)
        or len(place.shape.dimensions) != len(full)
    ):
        return ""
    for each, size in zip(place.shape.dimensions, full, strict=True):
        of = input_size(each, trial.sizes)
        if of is None:
            continue
        cuts = splits(Shape((each,)))
        parts = of.others * prod(
            trial.sizes.of(cut.axis) * (2 if cut.order == "zigzag" else 1) for cut in of.part.splits
        )
        if size % parts:
            axes = ", ".join(f"`{cut.axis}`" for cut in cuts)
            return f"`{of.name}` of {size} is not divisible into {parts} parts over {axes}"
    return ""


def placed(trial: Trial, name: TensorName, full: tuple[int, ...]) -> list[RankShard]:
    """Each rank's place of a tensor; empty where the layout does not fit it."""
    try:
        rank_shards = shards_held(trial, name, full)
    except (UnevenShards, UnknownSize):
        return []
    return [each for each in rank_shards if each.cut.full == full]


def shards_of(trial: Trial, name: TensorName, full: tuple[int, ...]) -> Iterator[tuple[int, Shard]]:
    """Each rank's shard of a tensor by the layout. Raises UnevenShards, UnknownSize."""
    kind, layout, known = LAYOUT_KINDS[name.kind], trial.layout, trial.sizes.known
    subject = name.subject
    expert = expert_of(layout, kind, subject, len(full), known)
    if expert is not None:
        yield from _shards_of_expert(trial, kind, expert)
        return
    if placement_of(layout, kind, subject, known) is None:
        return
    sizes = sized(layout, kind, subject, full, trial.sizes)
    for rank in range(trial.world):
        for each in (subject, *tied_to(layout, subject)):  # the other one's stage has a copy
            found = shard(layout, kind, each, rank, sizes)
            if found is not None:
                yield rank, found
                break


def _shards_of_expert(
    trial: Trial, kind: TensorKind, expert: Expert
) -> Iterator[tuple[int, Shard]]:
    """Each rank's shard of one expert."""
    for rank in range(trial.world):
        found = shard(trial.layout, kind, expert.all, rank, trial.sizes)
        if found is not None and expert.number in found.dimensions[0]:
            yield rank, replace(found, name=expert.name, dimensions=found.dimensions[1:])


def names_of(trial: Trial, name: TensorName) -> tuple[TensorName, ...]:
    """The tensor's name, and the names under which other stages hold copies of a tied one."""
    return (name, *map(name.of, tied_to(trial.layout, name.subject)))


def tensor_cuts(
    trial: Trial, reference: Recording
) -> tuple[Mapping[TensorName, tuple[str, Cut]], ...]:
    """The reference's name of each rank's tensors that are compared, and which of its elements they are."""
    found: list[dict[TensorName, tuple[str, Cut]]] = [{} for _ in range(trial.world)]
    for name in reference.tensors:
        if name.kind in trial.recorded and name.kind in LAYOUT_KINDS:
            for rank_shard in placed(trial, name, reference.shape(name)):
                for each in names_of(trial, name):
                    found[rank_shard.rank][each] = (name.name, rank_shard.cut)
    return tuple(found)


def parameter_cuts(
    trial: Trial, reference: Recording
) -> tuple[Mapping[str, tuple[str, Cut, float]], ...]:
    """The reference's name of each rank's generated parameters, and its shards of them."""
    filled = reference.filled
    return tuple(
        {each: (name, cut, filled[name]) for each, (name, cut) in cuts.items() if name in filled}
        for cuts in _initial(trial, reference)
    )


def input_cuts(trial: Trial, reference: Recording) -> tuple[Mapping[TensorName, Cut], ...]:
    """Each rank's shards of generated inputs. Each pipeline stage may be given the batch."""
    everywhere = replace(trial, layout=replace(trial.layout, stages=()))
    found: list[dict[TensorName, Cut]] = [{} for _ in range(trial.world)]
    for name, full in reference.generated.items():
        for each in placed(everywhere, name, full):
            found[each.rank][name] = each.cut
    return tuple(found)


def parameter_shards(trial: Trial, reference: Recording) -> Iterator[dict[TensorName, Tensor]]:
    """Each rank's shards of the parameters before the first step; padding is zero."""
    for cuts in _initial(trial, reference):
        held = {}
        for each, (name, cut) in cuts.items():
            of = reference.tensors[TensorName("params", name, 0)]
            held[TensorName("params", each, 0)] = cut.of(of)
        yield held


def _initial(trial: Trial, reference: Recording) -> list[dict[str, tuple[str, Cut]]]:
    """The reference's name of each rank's parameters, and the rank's shards of them: all of a
    parameter that has no place in the layout.
    """
    found: list[dict[str, tuple[str, Cut]]] = [{} for _ in range(trial.world)]
    for name in reference.tensors:
        if not name.is_first_weight:
            continue
        full = reference.shape(name)
        try:
            shards = dict(shards_of(trial, name, full))
        except (UnevenShards, UnknownSize):  # the comparison tells of it
            continue
        cuts = {rank: cut_of(each) for rank, each in shards.items()}
        for rank, cut in (cuts or dict.fromkeys(range(trial.world), whole(full))).items():
            found[rank][name.name] = name.name, cut
            for copy in names_of(trial, name):  # the reference may have both, and not tied
                found[rank].setdefault(copy.name, (name.name, cut))
    return found

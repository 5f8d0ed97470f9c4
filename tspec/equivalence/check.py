"""Runs both sides of an equivalence, merges the candidate's tensors by layout, and compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tspec.equivalence.child import Given
from tspec.equivalence.compare import Comparer, Comparison, Fault
from tspec.equivalence.cut import Cut, whole
from tspec.equivalence.cuts import cut_of, sized
from tspec.equivalence.launch import launch
from tspec.equivalence.losses import gradient_factor
from tspec.equivalence.merge import Merged, MergeFault, Piece, merge
from tspec.equivalence.observer import Orders, Perturbation
from tspec.equivalence.recording import Recording, TensorName, read
from tspec.equivalence.sides import Trial
from tspec.layout.places import placement_of
from tspec.layout.ranks import coordinates_of
from tspec.layout.shards import Shard, UnevenShards, shard
from tspec.layout.sizes import UnknownSize
from tspec.resolve.program.sharding import TensorKind

LAYOUT_KINDS: Mapping[str, TensorKind] = {
    "inputs": "input",
    "outputs": "output",
    "output_grads": "output_grad",
    "param_grads": "grad",
    "params": "param",
    "initial": "param",
    "buffers": "buffer",
}
"""What layouts call the tensors that are compared."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The run of the reference, and those with perturbed inputs."""

    recording: Recording
    samples: tuple[Recording, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a comparison came to.

    `unplaced` are tensors of the reference that have no place in the layout.
    """

    comparisons: tuple[Comparison, ...]
    faults: tuple[Fault, ...]
    unplaced: tuple[TensorName, ...]

    @property
    def wrong(self) -> tuple[Comparison, ...]:
        """What differs by more than is tolerated, the worst first."""
        found = [each for each in self.comparisons if each.differs]
        return tuple(sorted(found, key=lambda each: (-each.times, each.order)))

    @property
    def first(self) -> Comparison | None:
        """The first of them in the order of the reference's run."""
        return min(self.wrong, key=lambda each: each.order, default=None)


def run_reference(trial: Trial, folder: Path) -> Reference:
    """Run the reference, and again for each sample of its noise. Raises launch.Failed."""
    kinds = (*trial.kinds, "losses", *(("param_grads",) if "params" in trial.kinds else ()))
    found = []
    for number in range(trial.samples + 1):
        perturbation = Perturbation(number, trial.perturb) if number else None
        orders = Orders(trial.steps, kinds, trial.seed, perturbation=perturbation)
        name = f"sample-{number}" if number else "reference"
        found.append(read(launch(Given(trial.reference, orders), 1, folder, name), 0))
    return Reference(found[0], tuple(found[1:]))


def run_candidate(trial: Trial, reference: Recording, folder: Path) -> tuple[Recording, ...]:
    """Run the candidate, each rank with its piece of the reference's weights. Raises launch.Failed."""
    orders = Orders(trial.steps, (*trial.kinds, "losses"), trial.seed)
    given = Given(trial.candidate, orders, _cuts(trial, reference))
    place = launch(given, trial.world, folder, "candidate")
    return tuple(read(place, rank) for rank in range(trial.world))


def compare(trial: Trial, reference: Reference, candidate: Sequence[Recording]) -> Outcome:
    """Merge and compare all tensors of the reference that are to be compared."""
    known = reference.recording.tensors
    factor = gradient_factor(trial.layout.mesh.axes, known, candidate)
    comparer = Comparer(known, [each.tensors for each in reference.samples], trial.tolerance)
    comparisons: list[Comparison] = []
    faults: list[Fault] = []
    unplaced: list[TensorName] = []
    for name, tensor in known.items():
        if name.kind not in trial.kinds:
            continue
        held = [each.tensors.get(name) for each in candidate]
        if name.kind == "output_grads":
            held = [None if each is None else each.double() * factor for each in held]
        merged = _merged(trial, name, tuple(tensor.shape), held)
        if merged is None:
            unplaced.append(name)
            continue
        faults += comparer.faults(name, merged)
        if merged.tensor is not None:
            comparisons.append(comparer.compared(name, merged.tensor))
    return Outcome(tuple(comparisons), tuple(faults), tuple(unplaced))


# --- the pieces of the candidate ------------------------------------------------------------------


def _merged(
    trial: Trial, name: TensorName, full: tuple[int, ...], held: Sequence[Tensor | None]
) -> Merged | None:
    """A tensor that each rank holds so; None if the layout does not say how it is cut."""
    if name.kind == "losses":
        losses = [each.double() for each in held if each is not None]
        if not losses:
            return Merged(None, (MergeFault("missing", "no rank recorded it"),))
        return Merged(torch.stack(losses).mean(0))
    try:
        shards = dict(_shards(trial, name, full))
    except (UnevenShards, UnknownSize) as wrong:
        return Merged(None, (MergeFault("layout", f"its shards have no size: {wrong}"),))
    if not shards:
        return None
    shape = next(iter(shards.values())).full
    if shape != full:
        says = f"the layout says {list(shape)}, and the reference has {list(full)}"
        return Merged(None, (MergeFault("layout", says),))
    pieces = []
    for rank, each in shards.items():
        at = coordinates_of(trial.layout.mesh, rank)
        summand = tuple(at[axis] for axis in each.partial)
        pieces.append(Piece(rank, cut_of(each), held[rank], summand))
    return merge(full, pieces)


def _shards(trial: Trial, name: TensorName, full: tuple[int, ...]) -> Iterator[tuple[int, Shard]]:
    """What the layout gives each rank of a tensor. Raises UnevenShards, UnknownSize."""
    kind = LAYOUT_KINDS[name.kind]
    if placement_of(trial.layout, kind, name.name, trial.sizes.known) is None:
        return
    sizes = sized(trial.layout, kind, name.name, full, trial.sizes)
    for rank in range(trial.world):
        found = shard(trial.layout, kind, name.name, rank, sizes)
        if found is not None:
            yield rank, found


def _cuts(trial: Trial, reference: Recording) -> tuple[Mapping[str, tuple[Cut, float]], ...]:
    """Each rank's pieces of the generated parameters: all of a parameter that has no place in the layout."""
    found: list[dict[str, tuple[Cut, float]]] = [{} for _ in range(trial.world)]
    for name, tensor in reference.tensors.items():
        if name.kind != "initial" or name.name not in reference.filled:
            continue
        full = tuple(tensor.shape)
        try:
            shards = dict(_shards(trial, name, full))
        except (UnevenShards, UnknownSize):  # the comparison tells of it
            continue
        cuts = {rank: cut_of(each) for rank, each in shards.items()}
        for rank, cut in (cuts or dict.fromkeys(range(trial.world), whole(full))).items():
            found[rank][name.name] = cut, reference.filled[name.name]
    return tuple(found)

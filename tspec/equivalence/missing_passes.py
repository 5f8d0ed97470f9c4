"""Finds backward passes of a micro-batch that ranks of the candidate did not make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tspec.equivalence.blame import Blame
from tspec.equivalence.compare import Fault
from tspec.equivalence.recording import Recording, TensorName
from tspec.equivalence.shards import names_of, placed
from tspec.equivalence.sides import GRADIENTS_OF_ACTIVATIONS, Trial
from tspec.layout.places import stages_of
from tspec.layout.ranks import coordinates_of
from tspec.layout.text import ranks_text


class StagePass(NamedTuple):
    """The passes of a micro-batch through a stage; `chunk` is the virtual stage."""

    step: int
    microbatch: int
    stage: int
    chunk: int


@dataclass(frozen=True, slots=True)
class MissingPass:
    """A backward pass of which `ranks` recorded no gradient, though they made the forward pass.

    `tensors` are the gradients of the reference that they should have recorded. `parameters` are
    those that they hold: their gradients lack this micro-batch. `stages` is how many the layout
    has.
    """

    of: StagePass
    stages: int
    ranks: tuple[int, ...]
    tensors: frozenset[TensorName]
    parameters: frozenset[str]

    @property
    def blame(self) -> Blame:
        """The pass as a part of the script's own code."""
        stage = f" of stage {self.of.stage}" if self.stages > 1 else ""
        chunk = f", chunk {self.of.chunk}" if self.of.chunk else ""
        where = f"{ranks_text(self.ranks)}{stage}{chunk}"
        return Blame(
            "", f"no backward pass of micro-batch {self.of.microbatch} on {where}", None, ()
        )


def missing_passes(
    trial: Trial, reference: Recording, candidate: Sequence[Recording], faults: Iterable[Fault]
) -> tuple[MissingPass, ...]:
    """The backward passes that ranks did not make, from `faults` of tensors that they did not record."""
    absent = frozenset(
        each.name
        for each in faults
        if each.fault.kind == "missing" and each.name.kind in GRADIENTS_OF_ACTIVATIONS
    )
    ranks: dict[StagePass, set[int]] = {}
    for step, microbatch in sorted({(name.step, name.microbatch) for name in absent}):
        gradients = [
            name
            for name in reference.tensors
            if (name.kind, name.step, name.microbatch) == ("output_grads", step, microbatch)
        ]
        for of, rank in _without_backward(trial, reference, candidate, gradients):
            ranks.setdefault(of, set()).add(rank)
    stages = len({each.number for each in trial.layout.stages})
    parameters = [
        name for name in reference.tensors if name.kind == "param_grads" or name.is_first_weight
    ]
    return tuple(
        MissingPass(
            *(of, stages, tuple(sorted(lacking))),
            frozenset(_held_by(trial, reference, of, lacking, absent)),
            frozenset(name.name for name in _held_by(trial, reference, of, lacking, parameters)),
        )
        for of, lacking in ranks.items()
    )


def _without_backward(
    trial: Trial,
    reference: Recording,
    candidate: Sequence[Recording],
    gradients: Iterable[TensorName],
) -> Iterator[tuple[StagePass, int]]:
    """Passes of one micro-batch, and ranks that recorded outputs and none of the `gradients`."""
    forward: set[tuple[StagePass, int]] = set()
    backward: set[tuple[StagePass, int]] = set()
    for name in gradients:
        for each in placed(trial, name, reference.shape(name)):
            key = _pass_of(trial, name, each.rank), each.rank
            held = candidate[each.rank].tensors
            names = names_of(trial, name)
            if any(of in held for of in names):
                backward.add(key)
            if any(replace(of, kind="outputs") in held for of in names):
                forward.add(key)
    return iter(sorted(forward - backward))


def _held_by(
    trial: Trial,
    reference: Recording,
    of: StagePass,
    ranks: set[int],
    names: Iterable[TensorName],
) -> Iterator[TensorName]:
    """The tensors of a pass, and those of the step as a whole, that one of the ranks holds."""
    for name in names:
        if name.microbatch not in (0, of.microbatch) or name.step not in (0, of.step):
            continue
        holders = {each.rank for each in placed(trial, name, reference.shape(name))} & ranks
        if any(_pass_of(trial, name, rank)[2:] == of[2:] for rank in holders):
            yield name


def _pass_of(trial: Trial, name: TensorName, rank: int) -> StagePass:
    """The pass through a rank's stage to which a tensor of its modules belongs."""
    stage = coordinates_of(trial.layout.mesh, rank).get("pp", 0)
    chunks = (
        each.chunk
        for of in names_of(trial, name)
        for each in stages_of(trial.layout, of.name)
        if each.number == stage
    )
    return StagePass(name.step, name.microbatch, stage, next(chunks, 0))

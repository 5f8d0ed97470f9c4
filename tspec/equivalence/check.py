"""Runs both sides of an equivalence, merges the candidate's tensors by layout, and compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tspec.equivalence.child import Given
from tspec.equivalence.compare import Comparer, Comparison, Fault
from tspec.equivalence.launch import Run, launch, recorded
from tspec.equivalence.losses import gradient_factor, loss_factor
from tspec.equivalence.observer import Orders, Perturbation
from tspec.equivalence.pieces import data_axes, merge_by_layout, parameter_cuts, parameter_pieces
from tspec.equivalence.recording import Recording, TensorName, write
from tspec.equivalence.sides import GRADIENTS_OF_ACTIVATIONS, Trial
from tspec.equivalence.stages import first_stage, joined
from tspec.layout.places import tied_to

Launch = Callable[[Run, Path], Path]
"""Makes a run, as `launch` does."""


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


def reference_runs(trial: Trial) -> tuple[Run, ...]:
    """The run of the reference, and one more for each sample of its noise."""
    found = []
    for number in range(trial.samples + 1):
        perturbation = Perturbation(number, trial.perturb) if number else None
        orders = Orders(trial.steps, trial.recorded, trial.seed, perturbation=perturbation)
        name = f"sample-{number}" if number else "reference"
        given = Given(trial.reference, orders, inputs=first_stage(trial))
        found.append(Run(name, given, trial.reference_layout.mesh.world))
    return tuple(found)


def read_reference(trial: Trial, folder: Path) -> Reference:
    """What those runs recorded, in the folder or where the trial says. Raises launch.Failed."""
    begins_alike = trial.origin is None
    found = [
        joined(trial, recorded(each, trial.origin or folder, begins_alike))
        for each in reference_runs(trial)
    ]
    return Reference(found[0], tuple(found[1:]))


def run_reference(trial: Trial, folder: Path, start: Launch = launch) -> Reference:
    """Run the reference, and again for each sample of its noise, unless they are recorded. Raises launch.Failed."""
    for each in reference_runs(trial) if trial.origin is None else ():
        start(each, folder)
    return read_reference(trial, folder)


def candidate_run(trial: Trial, reference: Recording, rewrites: Path | None = None) -> Run:
    """The run of the candidate, each rank with its piece of the reference's generated weights.

    `rewrites` is a folder with the tensors that each rank rewrites.
    """
    orders = Orders(trial.steps, trial.recorded, trial.seed)
    given = Given(trial.candidate, orders, parameter_cuts(trial, reference), rewrites)
    name = "candidate" if rewrites is None or rewrites.name == WEIGHTS else "rewritten"
    return Run(name, given, trial.world)


WEIGHTS = "weights"
"""The folder with each rank's piece of weights that were recorded."""


def write_weights(trial: Trial, reference: Recording, folder: Path) -> Path | None:
    """Write each rank's piece of the reference's weights, for the candidate to begin with, if they were recorded."""
    if trial.origin is None:
        return None
    place = folder / WEIGHTS
    place.mkdir()
    for rank, pieces in enumerate(parameter_pieces(trial, reference)):
        write(place, rank, Recording(pieces, {}))
    return place


def run_candidate(
    trial: Trial,
    reference: Recording,
    folder: Path,
    rewrites: Path | None = None,
    start: Launch = launch,
) -> tuple[Recording, ...]:
    """Run the candidate. Raises launch.Failed."""
    begins = rewrites or write_weights(trial, reference, folder)
    run = candidate_run(trial, reference, begins)
    start(run, folder)
    return tuple(recorded(run, folder))


def compare(trial: Trial, reference: Reference, candidate: Sequence[Recording]) -> Outcome:
    """Merge and compare all tensors of the reference that are to be compared."""
    known = reference.recording.tensors
    asked = (trial.layout.mesh.axes, data_axes(trial, reference.recording), known, candidate)
    factors = dict.fromkeys(GRADIENTS_OF_ACTIVATIONS, gradient_factor(*asked))
    factors["losses"] = loss_factor(*asked)
    comparer = Comparer(known, [each.tensors for each in reference.samples], trial.tolerance)
    comparisons: list[Comparison] = []
    faults: list[Fault] = []
    unplaced: list[TensorName] = []
    parts = [each.parts for each in candidate]
    for name, tensor in known.items():
        if name.kind not in trial.kinds:
            continue
        tied = [replace(name, name=other) for other in tied_to(trial.layout, name.name)]
        held = [
            next((each.tensors[of] for of in (name, *tied) if of in each.tensors), None)
            for each in candidate
        ]
        if name.kind in factors:
            factor = factors[name.kind]
            held = [None if each is None else each.double() * factor for each in held]
        merged = merge_by_layout(trial, name, tuple(tensor.shape), held, parts)
        if merged is None:
            unplaced.append(name)
            continue
        faults += comparer.faults(name, merged)
        if merged.tensor is not None:
            comparisons.append(comparer.compared(name, merged.tensor))
    return Outcome(tuple(comparisons), tuple(faults), tuple(unplaced))

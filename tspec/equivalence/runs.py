"""Makes the runs of both sides, and reads their recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from tspec.equivalence.child import Given
from tspec.equivalence.expert_names import ExpertNames, as_known, names_of_ranks
from tspec.equivalence.launch import Failed, SideRun, launch, recorded
from tspec.equivalence.observing.orders import Orders, Perturbation
from tspec.equivalence.padded_places import padded_places
from tspec.equivalence.recording import Recording, TensorName, write
from tspec.equivalence.shards import (
    LAYOUT_KINDS,
    input_cuts,
    parameter_cuts,
    parameter_shards,
    tensor_cuts,
)
from tspec.equivalence.sides import Trial
from tspec.equivalence.skipped_updates import refuse_the_brink
from tspec.equivalence.stages import first_stage, joined, whole_models

Launch = Callable[[SideRun, Path], Path]
"""Makes a run, as `launch` does."""


@dataclass(frozen=True, slots=True)
class ReferenceRecordings:
    """The run of the reference, and those with perturbed inputs."""

    recording: Recording
    samples: tuple[Recording, ...]


def reference_runs(trial: Trial) -> tuple[SideRun, ...]:
    """The run of the reference, and one more for each sample of its noise."""
    found = []
    for number in range(trial.samples + 1):
        once = trial.reference_layout.mesh.world > 1
        perturbation = Perturbation(number, trial.perturb, once) if number else None
        orders = Orders(
            *(trial.steps, trial.recorded, trial.seed),
            perturbation=perturbation,
            sketching=trial.sketching,
            further=trial.further,
            inputs=trial.inputs,
            padded=padded_places(trial.reference_layout, trial.reference_sizes, LAYOUT_KINDS),
            drops=trial.drops,
        )
        name = f"sample-{number}" if number else "reference"
        given = Given(trial.reference, orders, inputs=first_stage(trial))
        found.append(SideRun(name, given, trial.reference_layout.mesh.world))
    return tuple(found)


def read_reference(trial: Trial, folder: Path) -> ReferenceRecordings:
    """Read the recordings of the reference's runs. Raises launch.Failed.

    They are in `folder`, or where the trial's `origin` says.
    """
    begins_alike = trial.origin is None
    found = [
        joined(trial, whole_models(trial.reference_layout, ranks))
        for ranks in (
            recorded(each, trial.origin or folder, begins_alike) for each in reference_runs(trial)
        )
    ]
    generated = {name.name for name in found[0].generated}
    for name, of in trial.inputs.items():
        if name not in generated:
            kind = "whole" if of.whole else "floating"
            raise Failed(
                f"nothing was generated for the input `{name}` of the reference: no call was given a tensor of {kind} "
                "numbers under that name",
                "",
            )
    refuse_the_brink(found[0], found[1:])
    return ReferenceRecordings(found[0], tuple(found[1:]))


def run_reference(trial: Trial, folder: Path, start: Launch = launch) -> ReferenceRecordings:
    """Run the reference, and again for each sample of its noise, unless they are recorded. Raises launch.Failed."""
    for each in reference_runs(trial) if trial.origin is None else ():
        start(each, folder)
    return read_reference(trial, folder)


def sampled_further(
    trial: Trial, reference: ReferenceRecordings, folder: Path, start: Launch = launch
) -> ReferenceRecordings:
    """The reference with the further perturbed runs that the trial asks for. Raises launch.Failed."""
    for each in reference_runs(trial)[1 + len(reference.samples) :]:
        start(each, folder)
    return read_reference(trial, folder)


def candidate_run(
    trial: Trial, reference: Recording, rewrites: Path | None = None, name: str = "candidate"
) -> SideRun:
    """Run the candidate; each rank gets its shard of the reference's generated weights.

    `rewrites` is a folder with the tensors that each rank replaces: recorded weights, or inputs of
    modules. `name` is the name of the run.
    """
    orders = Orders(
        *(trial.steps, trial.recorded, trial.seed),
        sketching=trial.sketching,
        further=trial.further,
        inputs=trial.inputs,
        drops=trial.drops,
    )
    ranks = names_of_ranks(trial, reference)
    is_placed = trial.sketched or rewrites is not None
    places = tensor_cuts(trial, reference) if is_placed else None
    given = Given(
        *(trial.candidate, orders),
        cuts=tuple(map(ExpertNames.beside, ranks, parameter_cuts(trial, reference))),
        rewrites=rewrites,
        input_cuts=input_cuts(trial, reference),
        places=places and tuple(map(ExpertNames.beside_tensors, ranks, places)),
    )
    return SideRun(name, given, trial.world)


def write_shards(
    trial: Trial,
    reference: Recording,
    folder: Path,
    shards: Iterable[Mapping[TensorName, Tensor]],
) -> None:
    """Write the tensors that each rank of the candidate is to replace."""
    ranks = names_of_ranks(trial, reference)
    for rank, (names, each) in enumerate(zip(ranks, shards, strict=True)):
        write(folder, rank, Recording(names.beside_tensors(each), {}))


def write_weights(trial: Trial, reference: Recording, folder: Path) -> Path | None:
    """Write each rank's shard of the reference's weights, for the candidate to begin with, if they were recorded. Of sketches they are generated again."""
    if trial.origin is None or trial.sketched:
        return None
    place = folder / "weights"
    place.mkdir()
    write_shards(trial, reference, place, parameter_shards(trial, reference))
    return place


def run_candidate(
    trial: Trial,
    reference: Recording,
    folder: Path,
    rewrites: Path | None = None,
    start: Launch = launch,
) -> tuple[Recording, ...]:
    """Run the candidate, with `rewrites` once more with its tensors rewritten. Raises launch.Failed."""
    if rewrites is None:
        run = candidate_run(trial, reference, write_weights(trial, reference, folder))
    else:
        run = candidate_run(trial, reference, rewrites, "rewritten")
    start(run, folder)
    return read_candidate(trial, reference, run, folder)


def read_candidate(
    trial: Trial, reference: Recording, run: SideRun, folder: Path
) -> tuple[Recording, ...]:
    """The recordings of the candidate's ranks, by the reference's names. Raises launch.Failed."""
    ranks = whole_models(trial.layout, recorded(run, folder))
    return tuple(map(as_known, ranks, names_of_ranks(trial, reference)))

"""Runs both sides of an equivalence, merges the candidate's tensors by layout, and compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import isfinite, log
from pathlib import Path

from torch import Tensor

from tspec.equivalence.blame import Blame, RunCalls, blamed, calls_of, everywhere, first_blamed
from tspec.equivalence.candidate_tensors import CandidateTensors, JudgedTensor
from tspec.equivalence.child import Given
from tspec.equivalence.clipping import clipped
from tspec.equivalence.compare import Comparer, Fault, TensorComparison
from tspec.equivalence.expert_names import ExpertNames, as_known, names_of_ranks, together
from tspec.equivalence.gradient_norms import NormComparison, norm_comparisons
from tspec.equivalence.inexact import inexact_tensors
from tspec.equivalence.later_reductions import reduced_later
from tspec.equivalence.launch import Failed, SideRun, launch, recorded
from tspec.equivalence.left_out import chosen
from tspec.equivalence.losses import LossScale, loss_scale
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.missing_passes import MissingPass, missing_passes
from tspec.equivalence.observing.orders import Orders, Perturbation
from tspec.equivalence.padded_places import padded_places
from tspec.equivalence.recording import Recording, SkippedUpdate, TensorName, write
from tspec.equivalence.shards import (
    LAYOUT_KINDS,
    data_axes,
    input_cuts,
    parameter_cuts,
    parameter_shards,
    tensor_cuts,
)
from tspec.equivalence.sides import GRADIENTS_OF_ACTIVATIONS, Trial
from tspec.equivalence.skipped_updates import (
    is_explained,
    overflow_of,
    refuse_the_brink,
    skipped_alone,
    skipped_by_both,
)
from tspec.equivalence.stages import first_stage, joined, whole_models
from tspec.layout.text import ranks_text

Launch = Callable[[SideRun, Path], Path]
"""Makes a run, as `launch` does."""

DRILLED = 8
"""The largest number of wrong tensors that are fetched in full."""


@dataclass(frozen=True, slots=True)
class ReferenceRecordings:
    """The run of the reference, and those with perturbed inputs."""

    recording: Recording
    samples: tuple[Recording, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a comparison.

    `unplaced` are tensors of the reference that have no place in the layout. `uneven` are tensors
    that cannot be cut into equal shards, each with the reason. `overflowed` are gradients that are
    not finite, each with the update that both sides skipped for it. `ungathered` are parameters
    that ranks gather after the last step. `drilled` are tensors that were
    recorded in full in a second run, since their sketches were wrong. `scale` has the factors of
    losses and of gradients of activations. `summands` are gradients of activations that differ from
    rank to rank, where the layout does not say whether ranks hold all of them or summands.
    `missing_passes` are backward passes that ranks of the candidate did not make. `norms` are norms
    of gradients that were compared with the candidate's own gradients.
    """

    comparisons: tuple[TensorComparison, ...]
    faults: tuple[Fault, ...]
    unplaced: tuple[TensorName, ...]
    drilled: tuple[TensorName, ...] = ()
    calls: RunCalls = field(default_factory=RunCalls)
    uneven: Mapping[TensorName, str] = field(default_factory=dict)
    overflowed: Mapping[TensorName, SkippedUpdate] = field(default_factory=dict)
    ungathered: frozenset[TensorName] = frozenset()
    scale: LossScale = field(default_factory=LossScale)
    summands: frozenset[TensorName] = frozenset()
    missing_passes: tuple[MissingPass, ...] = ()
    norms: tuple[NormComparison, ...] = ()

    @property
    def wrong(self) -> tuple[TensorComparison, ...]:
        """The tensors that differ by more than is tolerated, the worst first."""
        found = [each for each in self.comparisons if each.differs]
        return tuple(sorted(found, key=lambda each: (-each.times, each.order)))

    @property
    def first(self) -> TensorComparison | None:
        """The first wrong tensor in the order of the reference's run.

        Gradients clipped by a wrong norm do not count.
        """
        clipped = self.clipped
        wrong = (each for each in self.wrong if each.name not in clipped)
        return min(wrong, key=lambda each: each.order, default=None)

    @property
    def clipped(self) -> Set[TensorName]:
        """Gradients of parameters that are off by the factor of a norm that another gradient makes wrong."""
        return clipped(self.comparisons, self.faults)

    @property
    def judged(self) -> frozenset[tuple[str, str]]:
        """Kinds and names of all tensors that were compared."""
        return frozenset((each.name.kind, each.name.name) for each in self.comparisons)

    @property
    def telling(self) -> frozenset[tuple[str, str]]:
        """Kind and name of tensors in which an error would be visible.

        The gradient of a bias before a batch norm, for example, is round-off alone.
        """
        return frozenset(
            (each.name.kind, each.name.name) for each in self.comparisons if each.tells
        )

    def maker(self, name: TensorName) -> Blame:
        """The code that made a tensor, be it at fault or not."""
        return blamed(name, self.calls, self.judged)

    def missing_pass(self, name: TensorName) -> MissingPass | None:
        """The backward pass that was not made and would have made a tensor."""
        return next((each for each in self.missing_passes if name in each.tensors), None)

    @property
    def earliest(self) -> TensorName | None:
        """The first wrong tensor in the order of the reference's run: it differs, or its shards do not fit together."""
        first = min(self._wrong_or_misfit, key=lambda each: each.order, default=None)
        return None if first is None else first.name

    @property
    def _wrong_or_misfit(self) -> tuple[TensorComparison | Fault, ...]:
        """Tensors that differ and shards that do not fit together.

        Gradients clipped by a wrong norm do not count, nor do faults of the layout, which are no
        faults of the job.
        """
        clipped = self.clipped
        faults = (each for each in self.faults if each.fault.kind != "layout")
        found: tuple[TensorComparison | Fault, ...] = (*self.wrong, *faults)
        return tuple(each for each in found if each.name not in clipped)

    @property
    def blame(self) -> Blame | None:
        """The code at fault: all tensors before the first wrong one are right.

        None if those were not compared.
        """
        first = self.earliest
        if first is None:
            return None
        missing = self.missing_pass(first)
        if missing is not None:
            return missing.blame
        kinds = {kind for kind, _ in self.judged}
        of_step = (first.kind, first.step)
        names = (each.name for each in self._wrong_or_misfit)
        off = {each.name for each in names if (each.kind, each.step) == of_step}
        telling = {
            each.name.name
            for each in self.comparisons
            if each.tells and (each.name.kind, each.name.step) == of_step
        }
        if len(off) > 1 and telling <= off:
            if first.is_first_weight:
                return everywhere(first, self.calls)
            if first.kind == "param_grads":
                return everywhere(first, self.calls) if "output_grads" in kinds else None
        return first_blamed(first, self.calls, self.judged, kinds)


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


def scale_of(trial: Trial, reference: Recording, candidate: Sequence[Recording]) -> LossScale:
    """The factors from the losses of the candidate's ranks to the reference's."""
    axes, data = trial.layout.mesh.axes, data_axes(trial, reference)
    return loss_scale(
        *(axes, data, reference.tensors, candidate),
        gradients=lambda: _gradients(trial, reference, candidate),
    )


def _gradients(trial: Trial, reference: Recording, candidate: Sequence[Recording]) -> float | None:
    """The logarithm of the norm of all parameter gradients in the first step that the reference did
    not skip, relative to the reference's. None if it is unknown.
    """
    wholes, made = 0.0, 0.0
    names = [
        name
        for name in reference.tensors
        if name.kind == "param_grads" and not overflow_of(name, reference.skipped)
    ]
    first = min((name.step for name in names), default=0)
    tensors = CandidateTensors(trial, reference, candidate, factors={})
    for name in (each for each in names if each.step == first):
        merged = tensors.merged(name)
        if merged is not None and merged.tensor is not None:
            wholes += float(reference.tensors[name].double().square().sum())
            made += float(merged.tensor.square().sum())
    return log(made / wholes) / 2 if isfinite(made) and made and wholes else None


def compare(
    trial: Trial,
    reference: ReferenceRecordings,
    candidate: Sequence[Recording],
    scale: LossScale | None = None,
) -> Outcome:
    """Merge and compare all tensors of the reference that are to be compared.

    `scale` may come from another run of the candidate. Without it the scale is computed from this
    run.
    """
    recording, runs = reference.recording, (reference.recording, *reference.samples)
    scale = scale or scale_of(trial, recording, candidate)
    factors = dict.fromkeys(GRADIENTS_OF_ACTIVATIONS, scale.gradients) | {"losses": scale.losses}
    tensors = CandidateTensors(trial, recording, candidate, factors)
    skipped = skipped_by_both(recording, candidate)
    names = chosen(trial, runs, tensors, skipped)
    comparer = Comparer(
        recording.tensors,
        [each.tensors for each in reference.samples],
        trial.tolerance,
        recording.sketched,
    )
    data = data_axes(trial, recording)
    judged = [tensors.judged(name, comparer, data) for name in names.compared]
    comparisons, misfits = _with_later_reductions(recording.tensors, judged, comparer)
    norms = _norms(trial, reference, candidate)
    faults = _faults(trial, recording, candidate, skipped, misfits)
    return Outcome(
        tuple(comparisons),
        (
            *faults,
            *(each.fault for each in norms if each.differs),
            *inexact_tensors(trial, recording, candidate),
        ),
        unplaced=tuple(each.name for each in judged if not each.is_placed),
        calls=calls_of(trial, recording, candidate),
        uneven=names.uneven,
        overflowed=names.overflowed,
        ungathered=names.ungathered,
        scale=scale,
        summands=frozenset(each.name for each in judged if each.may_be_summands),
        missing_passes=missing_passes(trial, recording, candidate, faults),
        norms=norms,
    )


def _faults(
    trial: Trial,
    reference: Recording,
    candidate: Sequence[Recording],
    skipped: Set[SkippedUpdate],
    misfits: Iterable[Fault],
) -> list[Fault]:
    """Updates that were skipped by some, shards that do not fit for another reason, and losses that
    only the candidate has.
    """
    alone = list(skipped_alone(reference, candidate, skipped))
    found = [*alone, *(each for each in misfits if not is_explained(each, alone))]
    if "losses" in trial.kinds:
        found += _extra_losses(tuple(reference.tensors), candidate)
    return found


def _norms(
    trial: Trial, reference: ReferenceRecordings, candidate: Sequence[Recording]
) -> tuple[NormComparison, ...]:
    """The reported norms of gradients beside the candidate's own gradients, if they are compared."""
    if "gradient_norms" not in trial.kinds:
        return ()
    return tuple(norm_comparisons(trial, reference.recording, reference.samples, candidate))


def _with_later_reductions(
    known: Mapping[TensorName, Tensor], judged: Sequence[JudgedTensor], comparer: Comparer
) -> tuple[list[TensorComparison], list[Fault]]:
    """The comparisons and the faults. Replicas that the update reduces are no fault: their sum or mean is compared."""
    comparisons = [each.comparison for each in judged if each.comparison is not None]
    faults = [fault for each in judged for fault in each.faults]
    later = reduced_later(known, comparisons, faults)
    spread = {each.name: each.merged for each in judged if each.merged is not None}
    reduced = [
        comparer.reduced(each.name, spread[each.name]) if each.name in later else each
        for each in comparisons
    ]
    return reduced, [each for each in faults if each.name not in later]


def _extra_losses(
    reference: Sequence[TensorName], candidate: Sequence[Recording]
) -> Iterator[Fault]:
    """Losses of backward passes that only the candidate made, in steps in which the reference has a
    loss.
    """
    held: dict[TensorName, list[int]] = {}
    for rank, each in enumerate(candidate):
        for name in each.tensors:
            if name.kind == "losses":
                held.setdefault(name, []).append(rank)
    for name, ranks in held.items():
        of_step = [
            order
            for order, each in enumerate(reference)
            if (each.kind, each.step) == ("losses", name.step)
        ]
        if of_step and name not in reference:
            has = (
                f"{ranks_text(ranks)} recorded it, and the reference has {len(of_step)} in the step"
            )
            yield Fault(name, of_step[-1], MergeFault("extra", has))


def drill(
    trial: Trial, reference: Recording, found: Outcome, folder: Path, start: Launch = launch
) -> Outcome:
    """Run both sides again with the first wrong tensors in full, and compare them exactly. Raises
    launch.Failed.

    All other tensors are sketched again: the size of their kind decides what counts as zero.
    """
    wrong: list[TensorComparison | Fault] = [*found.wrong, *found.faults]
    wrong.sort(key=lambda each: each.order)
    names = tuple(dict.fromkeys(each.name for each in wrong))[:DRILLED]
    judged = frozenset(each for name in names for each in _judged_by(name, reference))
    full = together(names_of_ranks(trial, reference), judged)
    again = replace(trial, full=full)
    place = folder / "drill"
    place.mkdir()
    sides = run_reference(again, place, start)
    outcome = compare(again, sides, run_candidate(again, sides.recording, place, start=start))
    return replace(outcome, drilled=names)


def _judged_by(name: TensorName, reference: Recording) -> Iterator[TensorName]:
    """The tensors that are needed to judge one: the tensor, earlier ones of its name, and a parameter's gradient."""
    for each in reference.tensors:
        if (each.kind, each.name) == (name.kind, name.name) and each.step <= name.step:
            yield each
        if (each.kind, each.name, each.step) == ("param_grads", name.subject, name.step):
            yield each

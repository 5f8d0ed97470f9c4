"""Merges the candidate's tensors by layout, and compares them with the reference's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from math import isfinite, log
from pathlib import Path

import torch
from torch import Tensor

from tspec.equivalence.blame import calls_of
from tspec.equivalence.candidate_tensors import CandidateTensors, JudgedTensor
from tspec.equivalence.compare import Comparer, Fault, TensorComparison
from tspec.equivalence.expert_names import names_of_ranks, together
from tspec.equivalence.gradient_norms import NormComparison, norm_comparisons
from tspec.equivalence.inexact import inexact_tensors
from tspec.equivalence.later_reductions import reduced_later
from tspec.equivalence.launch import launch
from tspec.equivalence.left_out import chosen
from tspec.equivalence.losses import LossScale, loss_scale
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.missing_passes import missing_passes
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import Recording, SkippedUpdate, TensorName
from tspec.equivalence.runs import Launch, ReferenceRecordings, run_candidate, run_reference
from tspec.equivalence.shards import data_axes
from tspec.equivalence.sides import GRADIENTS_OF_ACTIVATIONS, Trial
from tspec.equivalence.skipped_updates import (
    is_explained,
    overflow_of,
    skipped_alone,
    skipped_by_both,
)
from tspec.layout.text import ranks_text

DRILLED = 8
"""The largest number of wrong tensors that are fetched in full."""


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
    sides = (recording, *candidate)
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
        undropped=tuple(sorted({name for each in sides for name in each.undropped})),
        drawing=tuple(sorted({name for each in sides for name in each.drawing})),
        steps_without_change=_steps_without_change(recording),
    )


def _steps_without_change(reference: Recording) -> int:
    """The number of steps of the reference if no parameter changed in any of them; 0 if one did, or an
    update was skipped.
    """
    states: dict[str, list[Tensor]] = {}
    for name, tensor in reference.tensors.items():
        if name.kind == "params":
            states.setdefault(name.name, []).append(tensor)
    if reference.skipped or any(
        not torch.equal(first, later) for first, *rest in states.values() for later in rest
    ):
        return 0
    return max((len(each) - 1 for each in states.values()), default=0)


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

"""Finds the tensors of the reference that are to be compared, and those that are left out, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile

from tspec.equivalence.candidate_tensors import CandidateTensors
from tspec.equivalence.compare import is_finite
from tspec.equivalence.recording import Recording, SkippedUpdate, TensorName
from tspec.equivalence.shards import indivisible
from tspec.equivalence.sides import Trial
from tspec.equivalence.skipped_updates import overflow_of


@dataclass(frozen=True, slots=True)
class ChosenTensors:
    """The tensors of the reference that are compared, in order, and those of compared kinds that are not.

    `uneven` cannot be cut into equal shards, each with the reason. `overflowed` are gradients that
    are not finite, each with the update that both sides skipped for it. `ungathered` are parameters
    that ranks gather after the last step.
    """

    compared: tuple[TensorName, ...]
    uneven: Mapping[TensorName, str]
    overflowed: Mapping[TensorName, SkippedUpdate]
    ungathered: frozenset[TensorName]


def chosen(
    trial: Trial,
    reference: Sequence[Recording],
    tensors: CandidateTensors,
    skipped: Set[SkippedUpdate],
) -> ChosenTensors:
    """Choose the tensors to compare. `reference` is the run and its perturbed runs; `skipped` are
    the updates that both sides skipped.
    """
    first = reference[0]
    given = known_before(trial, first.tensors)
    ungathered = frozenset(
        name for each in tensors.ranks for name in each.ungathered if trial.compares(name)
    )
    due = [
        name
        for name in first.tensors
        if trial.compares(name) and name not in given and name not in ungathered
    ]
    whys = {name: indivisible(trial, name, first.shape(name)) for name in due}
    overflowed = dict(_overflowed(due, skipped, reference, tensors))
    compared = tuple(
        name
        for name in due
        if not whys[name] and name not in overflowed and tensors.is_expected(name)
    )
    uneven = {name: why for name, why in whys.items() if why}
    return ChosenTensors(compared, uneven, overflowed, ungathered)


def _overflowed(
    names: Iterable[TensorName],
    skipped: Set[SkippedUpdate],
    reference: Sequence[Recording],
    candidate: CandidateTensors,
) -> Iterator[tuple[TensorName, SkippedUpdate]]:
    """The gradients of skipped updates that are not finite on a side."""
    for name in names:
        update = overflow_of(name, skipped)
        if update is None:
            continue
        held = (is_finite(each.tensors[name]) for each in reference)
        if not (all(held) and candidate.are_finite(name)):
            yield name, update


def known_before(trial: Trial, reference: Iterable[TensorName]) -> Set[TensorName]:
    """Initial weights that are not compared: those given to both sides, and those seen only after
    an update began.
    """
    begun = takewhile(lambda name: name.kind != "param_grads", reference)
    own = set() if trial.gives_weights else set(begun)
    return {name for name in reference if name.is_first_weight and name not in own}

"""Names of experts on a rank that numbers its own from 0 on, where the reference numbers all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeVar

from tspec.equivalence.recording import ModuleCall, ModuleInput, Recording, TensorName
from tspec.equivalence.shards import LAYOUT_KINDS, shards_of
from tspec.equivalence.sides import Trial
from tspec.layout.experts import expert_of
from tspec.layout.shards import UnevenShards
from tspec.layout.sizes import UnknownSize

V = TypeVar("V")
_NUMBER = re.compile(r"\.(\d+)(?=[.\[]|$)")


@dataclass(frozen=True, slots=True)
class ExpertNames:
    """The experts that a rank holds: list of modules -> their numbers in the reference, in order."""

    held: Mapping[str, tuple[int, ...]]

    def known(self, name: str) -> str:
        """The reference's name of an expert that the rank numbers from 0."""
        return self._renamed(name, lambda all_held, at: all_held[at])

    def own(self, name: str) -> str:
        """The rank's own name, numbered from 0, of an expert with a name of the reference."""
        return self._renamed(name, lambda all_held, number: all_held.index(number))

    def beside(self, values: Mapping[str, V]) -> dict[str, V]:
        """Values by names of the reference, with the rank's own names added."""
        return {**{self.own(name): value for name, value in values.items()}, **values}

    def beside_tensors(self, values: Mapping[TensorName, V]) -> dict[TensorName, V]:
        """The same of tensors."""
        own = {replace(name, name=self.own(name.name)): value for name, value in values.items()}
        return {**own, **values}

    def are_own(self, names: Iterable[str]) -> bool:
        """True if a rank with these names numbers its experts from 0."""
        used: dict[str, set[int]] = {}
        for within, number, _ in filter(None, map(self._expert, names)):
            used.setdefault(within, set()).add(number)
        return bool(used) and all(
            numbers <= set(range(len(self.held[within]))) for within, numbers in used.items()
        )

    def _renamed(self, name: str, number: Callable[[Sequence[int], int], int]) -> str:
        found = self._expert(name)
        if found is None:
            return name
        within, at, rest = found
        try:
            return f"{within}.{number(self.held[within], at)}{rest}"
        except (IndexError, ValueError):  # it is not an expert of this rank
            return name

    def _expert(self, name: str) -> tuple[str, int, str] | None:
        """Split an expert's name into its module list, its number and the rest."""
        for found in _NUMBER.finditer(name):
            if name[: found.start()] in self.held:
                return name[: found.start()], int(found[1]), name[found.end() :]
        return None


def names_of_ranks(trial: Trial, reference: Recording) -> tuple[ExpertNames, ...]:
    """The experts that each rank of the candidate holds, from the layout of the reference's
    parameters.
    """
    held: list[dict[str, set[int]]] = [{} for _ in range(trial.world)]
    known = trial.sizes.known
    for name in reference.tensors:
        if not name.is_first_weight:
            continue
        full = reference.shape(name)
        expert = expert_of(trial.layout, LAYOUT_KINDS[name.kind], name.name, len(full), known)
        if expert is None:
            continue
        try:
            ranks = [rank for rank, _ in shards_of(trial, name, full)]
        except (UnevenShards, UnknownSize):  # the comparison tells of it
            continue
        for rank in ranks:
            held[rank].setdefault(expert.within, set()).add(expert.number)
    return tuple(
        ExpertNames({within: tuple(sorted(numbers)) for within, numbers in each.items()})
        for each in held
    )


def as_known(recording: Recording, names: ExpertNames) -> Recording:
    """A rank's recording, with the reference's names for its experts."""
    recorded = (*recording.modules, *(name.name for name in recording.tensors))
    if not names.are_own(recorded):
        return recording
    name = names.known
    return replace(
        recording,
        tensors=_tensors(recording.tensors, name),
        filled={name(each): value for each, value in recording.filled.items()},
        modules={name(each): _call(call, name) for each, call in recording.modules.items()},
        parts={name(each): part for each, part in recording.parts.items()},
        sketched=_tensors(recording.sketched, name),
        elsewhere=frozenset(map(name, recording.elsewhere)),
        ungathered=frozenset(replace(each, name=name(each.name)) for each in recording.ungathered),
        inexact=frozenset(
            each._replace(name=replace(each.name, name=name(each.name.name)))
            for each in recording.inexact
        ),
    )


def together(names: Sequence[ExpertNames], tensors: Set[TensorName]) -> frozenset[TensorName]:
    """Add the tensors that share a rank's own name with one of `tensors`: orders to a rank name
    tensors, so it records them all.
    """
    found = set(tensors)
    for each in tensors:
        own = {of.own(each.name) for of in names}
        found |= {replace(each, name=of.known(name)) for of in names for name in own}
    return frozenset(found)


def _tensors(values: Mapping[TensorName, V], name: Callable[[str], str]) -> dict[TensorName, V]:
    return {replace(each, name=name(each.name)): value for each, value in values.items()}


def _call(call: ModuleCall, name: Callable[[str], str]) -> ModuleCall:
    return replace(
        call,
        parent=name(call.parent),
        inputs=tuple(_input(each, name) for each in call.inputs),
        returns=name(call.returns),
        passes_on=tuple(map(name, call.passes_on)),
        gives_back=name(call.gives_back),
    )


def _input(given: ModuleInput, name: Callable[[str], str]) -> ModuleInput:
    takes = (given.takes[0], name(given.takes[1])) if given.takes else ()
    return replace(given, name=name(given.name), takes=takes)

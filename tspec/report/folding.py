"""Folds symptoms by cause: each goes under the earliest symptom that can have caused it.

One symptom can have caused another if it began no later, if there is evidence of a connection (a
common subject, or data flow between the aspects of their rules, `aspects.INFLUENCES`), and if it is
not the same on all ranks while the other differs between ranks. A rule about the setup of a job
(`aspects.SETTINGS`) is connected only to its like: sound jobs have settings too. Two unrelated
faults of a program stay two findings. A rule is never folded under a less severe one: a fault that
stops a job is not hidden under a warning.

A rule may find a fault later than a less severe rule, since it is decided later (`when step > 1`,
`every 10 steps`). If it has not held since, and both are about the same aspects, it is the one to
show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from tspec.builtin.events import AFTER_STEP, roles_of
from tspec.reasons import DIFFER
from tspec.report.aspects import (
    NUMERIC,
    SETTINGS,
    aspects,
    aspects_of_absence,
    causal_place,
    disturbs,
)
from tspec.report.collect import TOGETHER, Symptom
from tspec.report.findings import Severity
from tspec.report.results import severity
from tspec.resolve.program.rules import Rule, Vocabulary
from tspec.resolve.program.types import Entity, ListOf, SetOf

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "draft")

LOCAL = ("parameter", "buffer", "module", "state", "param_group")
"""Entities with a place in the model, which their names show."""

BETWEEN = frozenset({"agreement", "communication"})
"""Aspects that can make ranks differ though they are the same on all of them."""

Place = tuple[str, str]
"""A kind of subject, and a name."""


class CauseLink(IntEnum):
    """The strength of the link from a cause to a symptom, the strongest last."""

    NONE = 0
    AFTER = 1
    """The symptom can follow from the cause."""
    ALIKE = 2
    """Both are about the same aspects."""
    PLACE = 3
    """Both are about the same tensor or layer."""


@dataclass(frozen=True, slots=True)
class ComparableSymptom:
    """A symptom with the facts that folding compares."""

    symptom: Symptom
    aspects: frozenset[str]
    places: frozenset[Place]

    @property
    def numeric(self) -> bool:
        """True if the symptom is about sizes of numbers only, so that nearly anything can be its
        cause.
        """
        return self.aspects <= NUMERIC

    @property
    def of_settings(self) -> bool:
        """True if the symptom is about the setup of the job alone."""
        return self.aspects <= SETTINGS

    @property
    def step(self) -> int:
        """The first step of the symptom."""
        return self.symptom.first.step

    @property
    def severity(self) -> int:
        """The severity of the rule, the most severe first."""
        return SEVERITIES.index(severity(self.symptom.rule))


@dataclass(frozen=True, slots=True)
class Cause:
    """Symptoms of one cause: the one to show, and the others, earliest first."""

    headline: Symptom
    consequences: tuple[Symptom, ...]


def fold(symptoms: Sequence[Symptom], vocabulary: Vocabulary) -> tuple[Cause, ...]:
    """The causes behind symptoms, earliest first. Drafts follow the accepted rules, and what is about
    settings alone, which sound jobs have too, comes last.
    """
    placed = [ComparableSymptom(s, _aspects(s, vocabulary), _places(s)) for s in symptoms]
    placed.sort(key=_precedence)
    roots: list[list[ComparableSymptom]] = []
    for one in placed:
        links = [max(_link(member, one) for member in members) for members in roots]
        strongest = max(links, default=CauseLink.NONE)
        if strongest is CauseLink.NONE:
            roots.append([one])
        else:
            nearest = [m for m, link in zip(roots, links, strict=True) if link is strongest]
            min(nearest, key=lambda members: members[0].step).append(one)
    roots.sort(
        key=lambda members: (
            members[0].of_settings,
            SEVERITIES[members[0].severity] == "draft",
            members[0].step,
            _source(members[0].symptom.rule),
        )
    )
    return tuple(map(_cause, roots))


def _aspects(symptom: Symptom, vocabulary: Vocabulary) -> frozenset[str]:
    find = aspects_of_absence if symptom.first.of_absence else aspects
    return find(symptom.rule, vocabulary)


def _cause(members: list[ComparableSymptom]) -> Cause:
    """The first is as severe as any."""
    rest = sorted(members[1:], key=lambda m: (m.step, m.severity))
    return Cause(members[0].symptom, tuple(m.symptom for m in rest))


def _precedence(one: ComparableSymptom) -> tuple[object, ...]:
    symptom = one.symptom
    return (
        one.severity,
        one.step,
        one.symptom.first.reason == DIFFER,
        one.numeric,
        causal_place(one.aspects),
        _place_in_step(symptom.rule),
        len(symptom.subjects),
        _source(symptom.rule),
    )


def _link(cause: ComparableSymptom, effect: ComparableSymptom) -> CauseLink:
    """The strength of the link from a symptom to a later one in the order of `_precedence`."""
    if not _can_have_caused(cause, effect):
        return CauseLink.NONE
    together = abs(effect.step - cause.step) <= TOGETHER
    apart = _apart(cause.places, effect.places)
    alike = bool(cause.aspects & effect.aspects)
    if cause.symptom.rule is effect.symptom.rule:
        return CauseLink.ALIKE if effect.numeric or not apart else CauseLink.NONE
    if apart:
        contagious = effect.numeric and "finiteness" in cause.aspects
        return CauseLink.ALIKE if contagious or (alike and together) else CauseLink.NONE
    if not cause.numeric and any(
        kind == "place" for kind, _ in _shared(cause.places, effect.places)
    ):
        return CauseLink.PLACE
    if cause.step > effect.step and not alike:
        return CauseLink.NONE
    if disturbs(cause.aspects, effect.aspects):
        return CauseLink.ALIKE if alike else CauseLink.AFTER
    return CauseLink.NONE


def _can_have_caused(cause: ComparableSymptom, effect: ComparableSymptom) -> bool:
    """True if severity, order in time, settings and ranks allow `cause` to have caused `effect`."""
    if cause.severity > effect.severity or cause.symptom.since > effect.step:
        return False
    if cause.of_settings is not effect.of_settings:
        return False
    if "agreement" in effect.aspects and cause.symptom.everywhere and not cause.aspects & BETWEEN:
        return False
    return effect.numeric or bool(set(cause.symptom.ranks) & set(effect.symptom.ranks))


def _shared(left: frozenset[Place], right: frozenset[Place]) -> list[Place]:
    return [
        (kind, name)
        for kind, name in left
        if any(kind == other and _near(kind, name, at) for other, at in right)
    ]


def _apart(left: frozenset[Place], right: frozenset[Place]) -> bool:
    """True if the two have subjects of the same kind, and share no place."""
    comparable = {kind for kind, _ in left} & {kind for kind, _ in right}
    return bool(comparable) and not _shared(left, right)


def _near(kind: str, one: str, other: str) -> bool:
    if kind != "place":
        return one == other
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _places(symptom: Symptom) -> frozenset[Place]:
    """The symptom's subjects that have a name of their own. Calls and elements of lists have none."""
    kinds = [_kind(rule_for.collection.type) for rule_for in symptom.rule.subjects]
    return frozenset(
        ("place" if kind in LOCAL else kind, name)
        for names in symptom.subjects
        for kind, name in zip(kinds, names, strict=True)
        if kind and name and not name.startswith("#")
    )


def _kind(collection: object) -> str:
    if isinstance(collection, ListOf | SetOf) and isinstance(collection.item, Entity):
        return collection.item.kind
    return ""


def _place_in_step(rule: Rule) -> tuple[int, bool]:
    """The place of the rule's window in a step. An earlier observation is nearer to the cause."""
    event = rule.window.event
    if event is None:
        return AFTER_STEP, True
    return roles_of(event.events[0]).place, rule.window.kind != "before"


def _source(rule: Rule) -> tuple[str, int]:
    return rule.source.path, rule.span.start

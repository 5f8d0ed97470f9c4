"""All instances of a rule: subjects, places, groups, members.

Page: "Instances".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tspec.builtin.kinds import PASSING
from tspec.check.interpret.calls import earlier_in_step, is_window, wanted
from tspec.check.interpret.expressions import evaluate, ordered, passing, reader
from tspec.check.interpret.frames import (
    EvaluationContext,
    GroupInstance,
    InstanceHistory,
    LocalInstance,
)
from tspec.check.interpret.groups import group_of
from tspec.check.interpret.members import others
from tspec.check.interpret.timeline import Timeline, TimelineCall
from tspec.check.interpret.values import Datum
from tspec.check.interpret.windows import occurrences, of_call, with_place
from tspec.check.verdicts import Instance
from tspec.resolve.program import rules
from tspec.resolve.program.rules import For, Rule
from tspec.trace.model import Missing, Ref


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """All recorded ranks, and the number of ranks of the job."""

    lines: Mapping[int, Timeline]
    world: int


@dataclass(frozen=True, slots=True)
class RankInstance:
    """The part of an instance on one rank, and the key that it shares with the parts on other ranks."""

    local: LocalInstance
    key: Instance
    no_group: str


def instances(rule: Rule, job: RecordedJob) -> list[GroupInstance]:
    """Every instance of a rule, in order of rank and place."""
    placed = [
        each
        for rank in sorted(job.lines)
        for window in occurrences(rule.window, job.lines[rank])
        for each in _rank_instances(
            rule, LocalInstance(job.lines[rank], job.world, window, {}), job
        )
    ]
    keys: dict[Instance, list[RankInstance]] = {}
    for each in placed:
        keys.setdefault(each.key, []).append(each)
    if rule.window.once:
        keys = _first_only(keys)
    history = InstanceHistory(rule.window.every)
    entered = {
        key: _enter(_grouped(rule, key, keys[key], job, history), history)
        for key in sorted(keys, key=lambda key: key.at)
    }
    for each in sorted(placed, key=lambda each: each.key.at):
        if each.key in entered:
            history.first.setdefault(each.local.line.rank, entered[each.key])
    return sorted(entered.values(), key=lambda each: each.key)


def _first_only(keys: Mapping[Instance, list[RankInstance]]) -> dict[Instance, list[RankInstance]]:
    """The first window for each choice of subjects and group."""
    first: dict[tuple[tuple[int, ...], tuple[str, ...]], tuple[int, int]] = {}
    for key in keys:
        choice = (key.ranks, key.subjects)
        first[choice] = min(key.at, first.get(choice, key.at))
    return {key: each for key, each in keys.items() if first[key.ranks, key.subjects] == key.at}


def _grouped(
    rule: Rule,
    key: Instance,
    placed: Sequence[RankInstance],
    job: RecordedJob,
    history: InstanceHistory,
) -> GroupInstance:
    locals_ = {each.local.line.rank: each.local for each in placed}
    no_group = placed[0].no_group
    if not rule.across or no_group:
        return GroupInstance(key, locals_, history, no_group)
    lacking, unknown = others(rule, key, locals_, job.lines)
    return GroupInstance(key, locals_, history, no_group, lacking, unknown)


def _enter(instance: GroupInstance, history: InstanceHistory) -> GroupInstance:
    for rank in instance.locals:
        key = (rank, instance.key.ranks, instance.key.subjects)
        history.of_subjects.setdefault(key, []).append(instance)
    return instance


# --- one rank's choices -------------------------------------------------------------------------


def _rank_instances(rule: Rule, local: LocalInstance, job: RecordedJob) -> Iterator[RankInstance]:
    """Each choice of subjects at one occurrence, if the occurrence is a window for it."""
    call, pattern = local.window.call, rule.window.event
    unfiltered = pattern is not None and not pattern.filters
    if call is not None and unfiltered and not _is_window(rule, local):
        return
    for chosen, names in _choices(rule.subjects, rule, local, ()):
        if call is not None and not (unfiltered or _is_window(rule, chosen)):
            continue
        ranks, no_group = group_of(rule, chosen, job.lines, job.world)
        at = chosen.window.at if call is None else _place(rule, chosen, call, ranks, job)
        subjects = tuple(f"#{at[1]}" if name is None else name for name in names)
        key = Instance(rule.qualified, ranks, at, subjects)
        if call is not None:
            chosen = replace(chosen, window=with_place(chosen.window, call, at[1]))
        yield RankInstance(chosen, key, no_group)


def _is_window(rule: Rule, local: LocalInstance) -> bool:
    pattern, call = rule.window.event, local.window.call
    if pattern is None or call is None:
        return False
    want = wanted(pattern, reader(EvaluationContext(local.reading())))
    return is_window(local.line, local.window, call, want)


def _place(
    rule: Rule, local: LocalInstance, call: TimelineCall, ranks: tuple[int, ...], job: RecordedJob
) -> tuple[int, int]:
    """(step, place among the windows that began in it); where the window is the call, of its group."""
    assert rule.window.event is not None
    want = wanted(rule.window.event, reader(EvaluationContext(local.reading())))
    earlier = earlier_in_step(local.line, local.window, call, want)
    if rule.window.kind == "calls" and rule.across:
        earlier = [
            other
            for other in earlier
            if group_of(rule, _of_call(rule, local, other), job.lines, job.world)[0] == ranks
        ]
    return (call.begin.context.step, len(earlier))


def _of_call(rule: Rule, local: LocalInstance, call: TimelineCall) -> LocalInstance:
    """The same choice with another call in place of the window's."""
    own = of_call(rule.window.kind, call)
    assert own is not None
    variable = next(each.variable for each in rule.subjects if is_windows_call(each, rule))
    return replace(local, window=own, bindings={**local.bindings, variable: call})


def is_windows_call(clause: For, rule: Rule) -> bool:
    """True if the clause is the `for c in calls(E)` whose calls are the windows."""
    return (
        rule.window.kind == "calls"
        and isinstance(clause.collection, rules.Calls)
        and clause.collection.event == rule.window.event
    )


Names = tuple[str | None, ...]
"""The subjects' names; None for the window's call, whose place is not known yet."""


def _choices(
    clauses: Sequence[For], rule: Rule, local: LocalInstance, names: Names
) -> Iterator[tuple[LocalInstance, Names]]:
    """Every choice of an element for each remaining `for`, in order."""
    if not clauses:
        yield local, names
        return
    clause, *rest = clauses
    for element, name in _elements(clause, rule, local):
        chosen = replace(local, bindings={**local.bindings, clause.variable: element})
        yield from _choices(rest, rule, chosen, (*names, name))


def _elements(clause: For, rule: Rule, local: LocalInstance) -> Iterator[tuple[Datum, str | None]]:
    """The elements of a `for` clause's collection, with their names as subjects."""
    if is_windows_call(clause, rule):
        yield local.window.call, None
        return
    frame = EvaluationContext(local.reading())
    seen = set()
    for place, element in enumerate(ordered(evaluate(clause.collection, frame), frame)):
        if isinstance(element, Missing):
            continue
        name = f"#{place}" if isinstance(element, TimelineCall) else str(place)
        if isinstance(element, Ref):
            name = element.name
            if element.kind in PASSING:
                in_window = passing(element.kind, frame)
                name = f"#{in_window.index(name)}" if name in in_window else name
        if name not in seen:
            yield element, name
        seen.add(name)

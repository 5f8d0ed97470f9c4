"""The other ranks that should have an instance, and the state of the ranks without it.


Page: "Instances", the lines on each rank of the group without the instance.
"""

from __future__ import annotations

from collections.abc import Mapping

from tspec.builtin.kinds import PASSING
from tspec.check.interpret.calls import calls_of, is_window, wanted
from tspec.check.interpret.expressions import reader
from tspec.check.interpret.frames import EvaluationContext, LocalInstance
from tspec.check.interpret.timeline import Timeline, TimelineCall
from tspec.check.interpret.values import Datum
from tspec.check.interpret.windows import occurrences, of_call
from tspec.check.verdicts import Instance
from tspec.reasons import DIED, LACKS, NO_WINDOW, of_rank
from tspec.resolve.program.rules import Rule
from tspec.trace.model import Context, Finish, Ref


def others(
    rule: Rule, key: Instance, locals_: Mapping[int, LocalInstance], lines: Mapping[int, Timeline]
) -> tuple[tuple[int, ...], dict[int, str]]:
    """The living members that lack the instance; and the members for which that is unknown, with
    the reason.
    """
    subjects = next(iter(locals_.values())).bindings
    found = {
        rank: _without_it(rule, key, subjects, lines.get(rank))
        for rank in key.ranks
        if rank not in locals_
    }
    lacking = tuple(rank for rank, what in found.items() if what == LACKS)
    return lacking, {
        rank: of_rank(rank, what) for rank, what in found.items() if what not in (LACKS, NO_MEMBER)
    }


NO_MEMBER = "is no member"


def _without_it(
    rule: Rule, key: Instance, subjects: Mapping[str, Datum], line: Timeline | None
) -> str:
    """The state of a rank of the group that lacks the instance."""
    if line is None:
        return DIED
    if not all(_had(value, rule, key, line) for value in subjects.values() if _lasts(value)):
        return NO_MEMBER
    if not _alive(rule, key, line):
        return DIED
    if not all(_lasts(value) or isinstance(value, TimelineCall) for value in subjects.values()):
        return NO_MEMBER
    if rule.window.kind == "calls" or _has_window(rule, key, subjects, line):
        return LACKS
    return NO_WINDOW


def _lasts(value: Datum) -> bool:
    """An entity that is no batch or message."""
    return isinstance(value, Ref) and value.kind not in PASSING


def _unit(rule: Rule, context: Context) -> int:
    """The step of a record; the epoch for windows that are epochs; 0 for runs."""
    if rule.window.span == "epoch":
        return context.epoch
    return 0 if rule.window.span == "run" else context.step


def _had(value: Datum, rule: Rule, key: Instance, line: Timeline) -> bool:
    """The subject was first sampled on that rank in the instance's step (epoch) or earlier."""
    if not isinstance(value, Ref):
        return False
    subject = line.subjects.get((value.kind, value.name))
    return subject is not None and _unit(rule, subject.first.context) <= key.at[0]


def _alive(rule: Rule, key: Instance, line: Timeline) -> bool:
    """True if the rank has a record of a later step (epoch) than the instance's, or a Finish."""
    return any(
        isinstance(record, Finish) or _unit(rule, record.context) > key.at[0]
        for record in line.records
    )


def _has_window(rule: Rule, key: Instance, subjects: Mapping[str, Datum], line: Timeline) -> bool:
    """True if that rank has a window at the same place, for these subjects."""
    if rule.window.event is None:
        return any(window.at == key.at for window in occurrences(rule.window, line))
    step, place = key.at
    found = 0
    for call in calls_of(line, rule.window.event.events):
        window = of_call(rule.window.kind, call)
        if call.begin.context.step == step and window is not None:
            local = LocalInstance(line, 0, window, subjects).reading()
            want = wanted(rule.window.event, reader(EvaluationContext(local)))
            found += is_window(line, window, call, want)
    return found > place

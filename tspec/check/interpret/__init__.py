"""The reference interpreter: `docs/design/semantics.md` in code, and nothing else.

It is slow and plain; tests compare the columnar checker and the generated hooks with it. The files
follow the page:

    timeline.py     Time: instants, values as of an instant, subjects that exist
    windows.py      Time: windows, instants, thinning
    calls.py        Time: calls that match an event pattern
    frames.py       Time: what lies in a window; where an expression is read
    instances.py    Instances: choices of subjects, places, keys
    groups.py       Instances: the ranks of an instance
    members.py      Instances: members that lack it
    decide.py       Instances: the verdict
    expressions.py  Values: each kind of expression
    values.py       Values: operators
    folds.py        Values: folds, features of collections
    lookback.py     Values: old, previous, first, over
    claims.py       Claims
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tspec.check.interpret.claims import changed_before, too_early
from tspec.check.interpret.decide import decide
from tspec.check.interpret.expressions import evaluate
from tspec.check.interpret.frames import EvaluationContext, GroupInstance
from tspec.check.interpret.instances import RecordedJob, instances
from tspec.check.interpret.timeline import Timeline, TimelineCall
from tspec.check.verdicts import Decision, Verdicts
from tspec.plan.shown import ShownValue, reads
from tspec.reasons import DIFFER, is_no_group
from tspec.resolve.program.rules import Claim, OnlyDuring, Ordered, Rule
from tspec.trace.endings import of_trace
from tspec.trace.model import Location, Trace, world_of_groups
from tspec.values import show


def interpret(rules: Sequence[Rule], trace: Trace) -> Verdicts:
    """The verdict of every instance of the rules in a trace, by rule and then by instance."""
    job = job_of(trace)
    decided = tuple(each for rule in rules for _, each in decide_rule(rule, job))
    return Verdicts(decided, tuple(_notes(decided)), ends_early=of_trace(trace))


def job_of(trace: Trace) -> RecordedJob:
    """A trace arranged for being asked, once for all rules."""
    lines = {s.rank: Timeline(s) for s in trace.streams if s.worker is None and s.records}
    recorded = (stream.rank for stream in trace.streams if stream.worker is None)
    return RecordedJob(lines, world_of_groups(recorded, trace.world))


def decide_rule(rule: Rule, job: RecordedJob) -> list[tuple[GroupInstance, Decision]]:
    """Every instance of a rule with its verdict, in order."""
    return [(instance, _decided(rule, instance)) for instance in instances(rule, job)]


def decide_again(
    rule: Rule, found: Sequence[GroupInstance], *, values: bool = False
) -> list[tuple[GroupInstance, Decision]]:
    """The verdicts of a rule that has the instances of another: only `when` or `expect` differ."""
    return [(instance, _decided(rule, instance, values)) for instance in found]


def _decided(rule: Rule, instance: GroupInstance, with_values: bool = True) -> Decision:
    found = decide(rule, instance)
    shown = with_values and found.verdict == "violated"
    values = values_read(rule, instance) if shown and found.reason != DIFFER else {}
    location = location_of(rule, instance) if shown else None
    return Decision(instance.key, found.verdict, found.reason, values, _step(instance), location)


def location_of(rule: Rule, instance: GroupInstance) -> Location | None:
    """The line that a violated instance points at, on the first rank that has it."""
    local = instance.locals[min(instance.locals)]
    call = None if rule.across else _broken_at(rule.expect, EvaluationContext(local, instance))
    return local.window.location if call is None else call.begin.location


def _broken_at(claim: Claim, frame: EvaluationContext) -> TimelineCall | None:
    """The call that violates a claim, if the claim names one."""
    if isinstance(claim, Ordered):
        return too_early(claim, frame)
    if isinstance(claim, OnlyDuring) and claim.change:
        return changed_before(claim, frame)
    return None


def _step(instance: GroupInstance) -> int:
    """The step in which the window closed; for the window of a call, the step in which the call
    began.
    """
    local = next(iter(instance.locals.values())).reading()
    if local.window.call is not None:
        return local.window.call.begin.context.step
    return local.window.close.context.step if local.window.close is not None else 0


def values_read(rule: Rule, instance: GroupInstance) -> Mapping[str, str]:
    """The values that an instance read; a value that differs between members, for each of them."""
    return {read.text: _shown(read, instance) for read in reads(rule)}


def _shown(read: ShownValue, instance: GroupInstance) -> str:
    frames = [EvaluationContext(local, instance) for _, local in sorted(instance.locals.items())]
    shown = [_show(evaluate(read.expr, frame)) for frame in frames]
    if len(set(shown)) == 1 and not read.each_member:
        return shown[0]
    ranks = sorted(instance.locals)
    if len(ranks) == 1:
        return shown[0]
    return ", ".join(f"rank {rank}: {text}" for rank, text in zip(ranks, shown, strict=True))


def shown_in(read: ShownValue, frame: EvaluationContext) -> str:
    """The value of a part of a rule on one rank, as text."""
    return _show(evaluate(read.expr, frame))


def _show(value: object) -> str:
    return value.begin.callable if isinstance(value, TimelineCall) else show(value)


def _notes(decided: Sequence[Decision]) -> Iterator[str]:
    """Axes that the job does not have."""
    yield from dict.fromkeys(
        f"{each.instance.rule}: {each.reason}"
        for each in decided
        if each.verdict == "idle" and is_no_group(each.reason)
    )

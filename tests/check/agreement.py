"""Where two executors disagree, and the smallest trace on which they still do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tspec.check.interpret import interpret
from tspec.check.verdicts import Instance, Verdicts
from tspec.resolve.program.rules import Rule
from tspec.trace.model import (
    Begin,
    Boundary,
    End,
    Finish,
    Location,
    Record,
    Sample,
    Stream,
    Trace,
)

Executor = Callable[[Sequence[Rule], Trace], Verdicts]


def differences(
    rules: Sequence[Rule], trace: Trace, other: Executor, reference: Executor = interpret
) -> list[str]:
    """Each instance that the interpreter and another executor decide differently, as a line."""
    ours = _by_instance(reference(rules, trace))
    theirs = _by_instance(other(rules, trace))
    return [
        f"{_shown(key)}: interpreter {ours.get(key, 'has none')}, other {theirs.get(key, 'has none')}"
        for key in sorted({*ours, *theirs})
        if ours.get(key) != theirs.get(key)
    ]


def decided_otherwise(rule: Rule, rewritten: Rule, trace: Trace) -> list[Instance]:
    """The instances that a rewritten rule decides otherwise. What it reads of them may be less."""

    def verdicts(rule: Rule) -> dict[Instance, str]:
        return {each.instance: each.verdict for each in interpret([rule], trace).decided}

    before, after = verdicts(rule), verdicts(rewritten)
    return sorted(key for key in {*before, *after} if before.get(key) != after.get(key))


Said = tuple[str, str, int, str, tuple[tuple[str, str], ...]]
"""Verdict, reason, step, and of a violated instance the line that it points at and what it shows."""


def _by_instance(found: Verdicts) -> dict[Instance, Said]:
    return {
        each.instance: (
            each.verdict,
            each.reason,
            each.step,
            _where(each.location),
            tuple(each.values.items()),
        )
        for each in found.decided
    }


def _where(location: Location | None) -> str:
    return "" if location is None else f"{location.file}:{location.line}"


def _shown(key: Instance) -> str:
    return f"{key.rule} ranks {key.ranks} at {key.at} of {', '.join(key.subjects) or 'nothing'}"


def disagreement(
    rules: Sequence[Rule], trace: Trace, other: Executor, reference: Executor = interpret
) -> str:
    """A report of the first rule that is decided differently, on a trace made small; or nothing."""
    found = differences(rules, trace, other, reference)
    if not found:
        return ""
    for rule in rules:
        if not differences([rule], trace, other, reference):
            continue
        small = _smaller(trace, partial(_differ, rule, other, reference))
        return report(rule, small, differences([rule], small, other, reference))
    return "several rules together: " + "\n".join(found)


def _differ(rule: Rule, other: Executor, reference: Executor, trace: Trace) -> bool:
    return bool(differences([rule], trace, other, reference))


def _smaller(trace: Trace, still: Callable[[Trace], bool]) -> Trace:
    """Leave out streams, records and fields, as long as the disagreement stays."""
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in _candidates(trace):
            if still(candidate):
                trace, shrunk = candidate, True
                break
    return trace


def _candidates(trace: Trace) -> Iterator[Trace]:
    for place in range(len(trace.streams) if len(trace.streams) > 1 else 0):
        yield replace(trace, streams=trace.streams[:place] + trace.streams[place + 1 :])
    for place, stream in enumerate(trace.streams):
        for records in _fewer(stream.records):
            streams = list(trace.streams)
            streams[place] = Stream(stream.rank, records)
            yield replace(trace, streams=tuple(streams))


def _fewer(records: tuple[Record, ...]) -> Iterator[tuple[Record, ...]]:
    size = len(records)
    while size:
        for start in range(0, len(records), size):
            left = records[:start] + records[start + size :]
            if left and _whole(left):
                yield left
        size //= 2
    for place, record in enumerate(records):
        if isinstance(record, Begin | End | Sample):
            for name in record.fields:
                fields = {key: value for key, value in record.fields.items() if key != name}
                yield (*records[:place], replace(record, fields=fields), *records[place + 1 :])


def _whole(records: Sequence[Record]) -> bool:
    """Every end has its begin, and every parent too."""
    begun = {record.call for record in records if isinstance(record, Begin)}
    return all(
        (not isinstance(record, End) or record.call in begun)
        and (not isinstance(record, Begin) or record.parent is None or record.parent in begun)
        for record in records
    )


def report(rule: Rule, trace: Trace, found: Sequence[str]) -> str:
    """A disagreement as text: the rule, the trace line by line, and the verdicts."""
    lines = [rule.source.slice(rule.spans.whole), "", f"world {trace.world}"]
    for stream in trace.streams:
        lines += ["", f"rank {stream.rank}", *map(_line, stream.records)]
    return "\n".join([*lines, "", *found, ""])


def _line(record: Record) -> str:
    context = record.context
    head = f"  {record.seq:3} step {context.step} epoch {context.epoch} mb {context.microbatch} {context.phase}: "
    match record:
        case Begin():
            return head + f"begin {record.event} #{record.call} in {record.parent} {record.fields}"
        case End():
            return head + f"end #{record.call} {record.fields} {record.error or ''}"
        case Sample():
            gone = " gone" if record.gone else ""
            return head + f"{record.kind} {record.subject}{gone} {record.fields}"
        case Boundary():
            return head + f"{record.span} {record.index} opens"
        case Finish():
            return head + "finish" + " in an empty step" * record.empty_step

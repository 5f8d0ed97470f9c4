"""Explains a rule: in words, its cost, its hook points, and its generated code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tspec.diagnostics import with_article
from tspec.lint.cost import cost_of, of_one_look, often
from tspec.plan.build import build
from tspec.plan.reads import SubjectField, reads_of
from tspec.resolve.program.rules import Fold, Previous, Program, Rule
from tspec.resolve.program.walk import parts
from tspec.resources import shipped
from tspec.targets.compile import CannotCompile, compile_program
from tspec.trace.model import Begin, End, Sample, Tensor, Trace, Value
from tspec.why.recording import events_of, part_for
from tspec.why.words import sentences

SIZES = {"float64": 8, "int64": 8, "complex64": 8, "float32": 4, "int32": 4, "complex128": 16}
"""Bytes of an element by dtype; two of the halves, one of all else."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One thing that a rule reads: in words, and the bytes of its tensors in a recording."""

    said: str
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """A rule, explained. `passes` counts reads of all parameters' memory, on average in one step."""

    rule: Rule
    packs: tuple[str, ...]
    words: tuple[str, ...]
    reads: tuple[Reading, ...]
    often: float
    passes: float
    passes_of_a_look: float
    collectives: float
    state: tuple[str, ...]
    hooks: tuple[str, ...]
    code: str
    no_code: str = ""
    """The reason why there is no code for the rule; empty if there is code."""


def explain(rule: Rule, program: Program, recording: Path | None = None) -> Explained:
    """Explain a rule, with sizes from a recording. Raises TraceError."""
    alone = replace(program, rules=(rule,))
    trace = part_for(rule, recording) if recording is not None else None
    cost, look = cost_of(rule), of_one_look(rule)
    try:
        code, no_code = compile_program(alone), ""
    except CannotCompile as why:
        code, no_code = "", str(why)
    return Explained(
        rule,
        packs_of(rule),
        tuple(sentences(rule)),
        tuple(_reads(rule, trace)),
        often(rule),
        cost.passes,
        look.passes,
        cost.collectives,
        tuple(_state(rule, alone)),
        tuple(_hooks(rule)),
        _of_rule(code),
        no_code,
    )


def packs_of(rule: Rule) -> tuple[str, ...]:
    """The shipped packs that use the rule's module."""
    use = re.compile(rf"^use {re.escape(rule.module)}\b", re.MULTILINE)
    folder = Path(str(shipped("specs")))
    return tuple(
        f"specs/{path.parent.name}"
        for path in sorted(folder.glob("*/*.tspec"))
        if not path.name.endswith(".test.tspec") and use.search(path.read_text(encoding="utf-8"))
    )


# --- reads --------------------------------------------------------------------------------------

_FRAMES = {
    "now": "",
    "was": " at the start",
    "first": " as first seen",
    "within": " at calls within the window",
}


def _reads(rule: Rule, trace: Trace | None) -> Iterator[Reading]:
    found = reads_of(rule)
    for column in found.columns:
        features = f": {', '.join(sorted(column.features))}" if column.features else ""
        said = f"{column.name} of each {column.kind}{_FRAMES[column.frame]}{features}"
        size = _bytes(column, trace) if trace is not None and column.features else None
        yield Reading(said, size)
    for call in found.call_fields:
        features = f": {', '.join(sorted(call.features))}" if call.features else ""
        size = _call_bytes(call.event, call.name, trace) if trace and call.features else None
        yield Reading(f"{call.name} of calls of {call.event}{features}", size)
    for frame, name in found.ambients:
        yield Reading(f"the {name}{_FRAMES[frame]}")


def _bytes(column: SubjectField, trace: Trace) -> int:
    """The bytes of the tensors of a column on the first rank, as they were last."""
    last: dict[str, Value] = {}
    for record in trace.streams[0].records if trace.streams else ():
        if isinstance(record, Sample) and record.kind == column.kind:
            last[record.subject] = record.fields.get(column.name, last.get(record.subject, 0))
    return sum(_size(value) for value in last.values())


def _call_bytes(event: str, name: str, trace: Trace) -> int:
    """The bytes of the tensors of all calls of an event on the first rank, in one step on average."""
    records = trace.streams[0].records if trace.streams else ()
    numbers = {each.call for each in records if isinstance(each, Begin) and each.event == event}
    total = sum(
        _size(record.fields[name])
        for record in records
        if isinstance(record, Begin | End) and record.call in numbers and name in record.fields
    )
    steps = {record.context.step for record in records}
    return total // max(len(steps), 1)


def _size(value: Value) -> int:
    if isinstance(value, tuple):
        return sum(map(_size, value))
    if not isinstance(value, Tensor) or value.numel is None:
        return 0
    each = 2 if value.dtype in ("float16", "bfloat16", "int16") else SIZES.get(value.dtype or "", 1)
    return value.numel * each


# --- kept values and hook points ----------------------------------------------------------------


def _state(rule: Rule, alone: Program) -> Iterator[str]:
    plan = build(alone, {})
    one = plan.rules[0] if plan.rules else None
    spans = [part.over for part in parts(rule) if isinstance(part, Fold) and part.over is not None]
    if spans:
        longest = max(spans, key=lambda span: span.count)
        span = longest.unit if longest.count == 1 else f"{longest.count} {longest.unit}s"
        yield f"values of the last {span}, for each of its subjects"
    elif any(isinstance(part, Previous) for part in parts(rule)):
        yield "values of the time before, for each of its subjects"
    if one is not None and one.reads.of("first"):
        yield "what was first seen of each subject"
    if one is not None and one.reads.reads_start:
        yield "what it reads at the start, until the window ends"
    if rule.window.once:
        yield "which subjects were looked at"
    if any(each.conditional for each in rule.responses):
        yield "how many checks have failed"


def _hooks(rule: Rule) -> Iterator[str]:
    window = rule.window
    for event in window.event.events if window.event is not None else ():
        if window.kind in ("before", "during", "calls"):
            yield f"when {event} begins"
        if window.kind != "before":
            yield f"when {event} returns"
    if window.kind == "each":
        yield f"when {with_article(window.span)} ends"
        if reads_of(rule).reads_start:
            yield f"when {with_article(window.span)} begins"
    windows = set(window.event.events) if window.event is not None else set()
    for event in sorted(events_of(rule) - windows):
        yield f"at calls of {event}, which it looks for"


def _of_rule(code: str) -> str:
    """The part of a compiled module that is the rule's own: its columns and its functions."""
    lines = code.splitlines()
    starts = [n for n, line in enumerate(lines) if re.match(r"R0_[A-Z]+ = |def r0_", line)]
    if not starts:
        return ""
    first = starts[0] - 1 if lines[starts[0] - 1].startswith("# ") else starts[0]
    ends = (n for n in range(starts[0], len(lines)) if _is_next(lines[n]))
    return "\n".join(lines[first : next(ends, len(lines))]).rstrip()


def _is_next(line: str) -> bool:
    """True if a line begins the hook points, which belong to all rules."""
    return bool(re.match(r"def (begin_|end_|at_)|[A-Z_]+ = |RULES", line))

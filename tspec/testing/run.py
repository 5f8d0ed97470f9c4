"""The verdicts of the rules that a test decides, by every executor that can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tspec.check.interpret import decide_rule, job_of
from tspec.check.verdicts import Decision
from tspec.diagnostics import Diagnostic
from tspec.resolve.program.declarations import TestRecording
from tspec.resolve.program.rules import Program, Rule, TestDeclaration
from tspec.resolve.program.scripts import Script
from tspec.testing.play import CannotPlay, play
from tspec.trace.errors import TraceError
from tspec.trace.model import Trace

if TYPE_CHECKING:
    from tspec.check.interpret.frames import GroupInstance
    from tspec.check.interpret.instances import RecordedJob

Decisions = Mapping[str, Sequence[tuple["GroupInstance", Decision]]]
"""By the qualified name of a rule: its instances with their verdicts."""


@dataclass(frozen=True, slots=True)
class TestRun:
    """A test and the verdicts of its rules. `problem`: why it has no trace to decide them on."""

    __test__ = False  # pytest: this is no test class

    test: TestDeclaration
    trace: Trace | None
    job: RecordedJob | None
    decisions: Decisions = field(default_factory=dict)
    problem: Diagnostic | None = None


def rules_of(program: Program) -> dict[str, Rule]:
    """All rules that tests may name."""
    return {rule.qualified: rule for rule in (*program.used, *program.off, *program.rules)}


def decided_by(test: TestDeclaration, known: Mapping[str, Rule]) -> list[Rule]:
    """The rules that a test names, and with `passes all others` all that it may name."""
    names = [*test.rules]
    if any(outcome.rule is None for outcome in test.outcomes):
        names += test.seen
    return [known[name] for name in dict.fromkeys(names) if name in known]


def run(test: TestDeclaration, program: Program, known: Mapping[str, Rule]) -> TestRun:
    """Play a script or read a recording, and decide the test's rules by the reference interpreter."""
    try:
        trace = trace_of(test, program)
    except CannotPlay as problem:
        found = Diagnostic("TS0603", str(problem), problem.span, test.source)
        return TestRun(test, None, None, problem=found)
    except TraceError as problem:
        hint = "a trace's path is relative to the file of the test"
        span = test.events.span if isinstance(test.events, TestRecording) else test.span
        found = Diagnostic("TS0603", str(problem), span, test.source, hint=hint)
        return TestRun(test, None, None, problem=found)
    job = job_of(trace)
    decisions = {rule.qualified: decide_rule(rule, job) for rule in decided_by(test, known)}
    return TestRun(test, trace, job, decisions)


def trace_of(test: TestDeclaration, program: Program) -> Trace:
    """The trace of a test. Raises CannotPlay for a script, TraceError for a recording, also a damaged one."""
    if isinstance(test.events, Script):
        return play(test.events, program.vocabulary)
    # Only tests of recordings need pyarrow, which takes 0.4 s.
    from tspec.trace.read import read_trace

    folder = Path(test.source.path).parent / test.events.path
    trace = read_trace(folder)
    for stream in trace.streams:
        if stream.ending is not None and stream.ending.damage is not None:
            raise TraceError(
                f"`{folder}`: the recording of rank {stream.rank} is {stream.ending.words}"
            )
    return trace

"""All tests of a program, run and judged."""

from __future__ import annotations

from dataclasses import dataclass

from tspec.diagnostics import Diagnostic
from tspec.resolve.program.rules import Program
from tspec.testing.executors import disagreements
from tspec.testing.judge import judge
from tspec.testing.run import TestRun, rules_of, run


@dataclass(frozen=True, slots=True)
class TestResult:
    """A test that ran, and its failures."""

    test_run: TestRun
    failures: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """All tests that ran. `faults`: instances that two executors decide differently."""

    tests: tuple[TestResult, ...]
    faults: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """`3 tests passed`, `2 of 3 tests passed, 1 failed`."""
        failed = sum(bool(each.failures) for each in self.tests)
        noun = f"test{'' if len(self.tests) == 1 else 's'}"
        if not failed:
            return f"{len(self.tests)} {noun} passed"
        return f"{len(self.tests) - failed} of {len(self.tests)} {noun} passed, {failed} failed"


def run_all(program: Program, *, hooks: bool = False, others: bool = True) -> Suite:
    """Run every test of a program. `others`: let the other executors decide too, `hooks` included."""
    known = rules_of(program)
    test_run = [run(test, program, known) for test in program.tests]
    faults = disagreements(test_run, program, known, hooks) if others else []
    return Suite(tuple(TestResult(each, judge(each, known)) for each in test_run), tuple(faults))

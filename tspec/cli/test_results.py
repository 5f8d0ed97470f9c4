"""Results of tests, in the form that all output formats write."""

from __future__ import annotations

from dataclasses import replace

from tspec.printable import visible
from tspec.report.results import Case, Result, Results, from_diagnostic
from tspec.testing.suite import Suite, TestResult


def results_of(suite: Suite) -> Results:
    """Each failure as a result, and each test as a case."""
    return Results(
        tuple(result for judged in suite.tests for result in _failures(judged)),
        tuple(_case(judged) for judged in suite.tests),
        suite.faults,
        "test",
    )


def _failures(judged: TestResult) -> list[Result]:
    title = judged.test_run.test.title
    found = []
    for place, failure in enumerate(judged.failures):
        result = from_diagnostic(failure, {"test": title})
        head = f'test "{visible(title)}" fails\n' if place == 0 else ""
        found.append(replace(result, text=head + result.text))
    return found


def _case(judged: TestResult) -> Case:
    test = judged.test_run.test
    line = test.source.position(test.span.start).line
    failures = judged.failures
    return Case(
        test.title,
        test.source.path,
        "failed" if failures else "passed",
        failures[0].message if failures else "",
        line,
    )

"""Specs from text, and what testing says of them."""

from __future__ import annotations

from tspec.resolve import load_text
from tspec.resolve.program.rules import Program
from tspec.testing.coverage import Coverage, VerdictCounts, count_tests, coverage
from tspec.testing.mutate import mutate
from tspec.testing.suite import Suite, run_all

HEAD = "edition 2026\n\nmodule example\n\nuse std.torch\n\n"


def program(text: str) -> Program:
    """The program of a spec; declarations alone get a head."""
    loaded = load_text(text if text.startswith("edition") else HEAD + text, "example.tspec")
    assert loaded.program is not None, [each.message for each in loaded.diagnostics]
    return loaded.program


def suite(text: str, *, hooks: bool = True) -> Suite:
    """All tests of a spec, by every executor, which have to agree."""
    found = run_all(program(text), hooks=hooks)
    assert found.faults == ()
    return found


def failures(text: str) -> list[str]:
    """The codes and messages of what fails."""
    return [f"{f.code} {f.message}" for each in suite(text).tests for f in each.failures]


def covered(text: str) -> Coverage:
    """What the tests of a spec cover."""
    found = program(text)
    counts = VerdictCounts()
    count_tests([each.test_run for each in run_all(found, others=False).tests], found.rules, counts)
    return coverage(found.rules, counts)


def codes(text: str) -> set[str]:
    """Every code that testing has for a spec: of failures, of coverage, of changes unnoticed."""
    found = {failure.code for each in suite(text).tests for failure in each.failures}
    found |= {gap.code for each in covered(text).rules for gap in each.gaps}
    asked = program(text)
    for each in mutate(asked, asked.rules).rules:
        found |= {"TS0620"} if each.tests and each.survivors else set()
        found |= set() if each.tests else {"TS0621"}
    return found

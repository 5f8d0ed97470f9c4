"""A lint rule: a code, a name, and one function from a checked program to its violations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tspec.diagnostics import Severity
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation


@dataclass(frozen=True, slots=True)
class LintRule:
    """One lint rule. `name` is in kebab case and states the problem; `code` has a page."""

    code: str
    name: str
    check: Callable[[CheckedProgram], Iterator[LintViolation]]
    severity: Severity = "warning"

"""Lint: every rule over the loaded files, without findings that the source allows or the project
ignores.
"""

from __future__ import annotations

from tspec.diagnostics import Diagnostic
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintFinding, LintViolation
from tspec.lint.registry import RULES
from tspec.lint.rule import LintRule
from tspec.lint.settings import DEFAULT, Settings
from tspec.lint.suppression import sift
from tspec.resolve.load import Loaded


def lint(loaded: Loaded, settings: Settings = DEFAULT) -> tuple[LintFinding, ...]:
    """The findings of lint in the files asked for by name, sorted by file and place.

    `loaded` must have no errors. Warnings of loading itself are not among the findings.
    """
    checked = CheckedProgram(loaded, settings)
    found = [
        _finding(rule, each)
        for rule in RULES
        if settings.selects(rule.code)
        for each in rule.check(checked)
        if not settings.ignores(rule.code, each.source.path)
    ]
    return tuple(sorted(sift(found, checked), key=lambda each: each.key))


def _finding(rule: LintRule, found: LintViolation) -> LintFinding:
    diagnostic = Diagnostic(
        rule.code,
        found.message,
        found.span,
        found.source,
        found.related,
        found.hint,
        rule.severity,
    )
    return LintFinding(diagnostic, rule.name, found.fix, found.invariant)

"""TS0455: one threshold written in several rules of a file."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.diagnostics import Related
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation
from tspec.lint.rule import LintRule
from tspec.resolve.outline import Outline
from tspec.source import Span

RULES_WITH_IT = 3
"""The number of rules of one file from which on an equal number is no coincidence."""

_PLAIN = frozenset({0.0, 0.5, 1.0, 2.0, 0.1, 0.01, 10.0, 100.0})


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for file in checked.files:
        for places in _numbers(file).values():
            if len(places) < RULES_WITH_IT:
                continue
            first, *others = places.values()
            shown = file.source.slice(first)
            message = f"`{shown}` stands in {len(places)} rules"
            hint = f"give it a name: `let limit = {shown}`"
            related = tuple(Related(span, "and here") for span in others[:3])
            yield LintViolation(message, file.source, first, hint, related)


def _numbers(file: Outline) -> dict[float, dict[str, Span]]:
    """Fractions by value: the first place of each in each rule. Whole numbers mean too many things."""
    found: dict[float, dict[str, Span]] = {}
    for rule in file.of("invariant"):
        for value, span in rule.fractions:
            if value not in _PLAIN:
                found.setdefault(value, {}).setdefault(rule.name.text, span)
    return found


RULE = LintRule("TS0455", "repeated-number", check)

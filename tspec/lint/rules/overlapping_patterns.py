"""TS0470: two places of a layout that both say how one tensor is cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tspec.diagnostics import Related
from tspec.layout.patterns import common, numbered_containers, with_numbers
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation
from tspec.lint.rule import LintRule
from tspec.resolve.program.sharding import Placement


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for layout in checked.layouts:
        containers = numbered_containers(layout)
        for first, second in combinations(layout.placements, 2):
            if first.kind != second.kind or _exclude(first, second):
                continue
            name = common(*(with_numbers(each.pattern, containers) for each in (first, second)))
            if name is None:
                continue
            message = f"`{name}` fits two places of the layout"
            hint = "the first counts: make one pattern narrower, or say when each applies"
            there = Related(first.pattern_span, "the other one")
            yield LintViolation(message, layout.source, second.pattern_span, hint, (there,))


def _exclude(first: Placement, second: Placement) -> bool:
    """True if at most one of the two applies: each has its `when`, or the second covers the
    remaining cases.
    """
    if first.when is not None and second.when is not None and first.when != second.when:
        return True
    otherwise = first.when is not None and second.when is None
    return (first.pattern != second.pattern or otherwise) and second.fits(first.pattern)


RULE = LintRule("TS0470", "overlapping-patterns", check)

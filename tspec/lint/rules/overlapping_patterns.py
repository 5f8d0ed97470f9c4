"""TS0470: two places of a layout that both say how one tensor is cut."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

from tspec.diagnostics import Related
from tspec.lint.checked import Checked
from tspec.lint.finding import Found
from tspec.lint.rule import LintRule
from tspec.resolve.program.sharding import Placement


def check(checked: Checked) -> Iterator[Found]:
    for layout in checked.layouts:
        for first, second in combinations(layout.placements, 2):
            if first.kind != second.kind or _exclude(first, second):
                continue
            name = common(first.pattern, second.pattern)
            if name is None:
                continue
            message = f"`{name}` fits two places of the layout"
            hint = "make one pattern narrower, or say when each applies"
            there = Related(first.pattern_span, "the other one")
            yield Found(message, layout.source, second.pattern_span, hint, (there,))


def _exclude(first: Placement, second: Placement) -> bool:
    """Both say when, and not the same: whether they exclude each other is theirs to know."""
    if first.when is None or second.when is None:
        return False
    return first.when != second.when


def common(one: str, other: str) -> str | None:
    """A name that fits both of two patterns with `*`, or None if there is none."""

    @cache
    def fit(left: int, right: int) -> str | None:
        """A name that fits what is left of both."""
        a, b = one[left : left + 1], other[right : right + 1]
        if not a and not b:
            return ""
        ways = [(left + 1, right, "")] if a == "*" else []
        ways += [(left, right + 1, "")] if b == "*" else []
        if a == "*" and b == "*":
            ways.insert(0, (left + 1, right + 1, "x"))
        elif a == "*" and b:
            ways.append((left, right + 1, b))
        elif b == "*" and a:
            ways.append((left + 1, right, a))
        elif a == b:
            ways.append((left + 1, right + 1, a))
        for further, along, taken in ways:
            rest = fit(further, along)
            if rest is not None:
                return taken + rest
        return None

    return fit(0, 0)


RULE = LintRule("TS0470", "overlapping-patterns", check)

"""TS0470: two places of a layout that both say how one tensor is cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from tspec.diagnostics import Related
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation
from tspec.lint.rule import LintRule
from tspec.resolve.program.sharding import Placement


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for layout in checked.layouts:
        for first, second in combinations(layout.placements, 2):
            if first.kind != second.kind or _exclude(first, second):
                continue
            name = common(first.pattern, second.pattern)
            if name is None:
                continue
            message = f"`{name}` fits two places of the layout"
            hint = "the first counts: make one pattern narrower, or say when each applies"
            there = Related(first.pattern_span, "the other one")
            yield LintViolation(message, layout.source, second.pattern_span, hint, (there,))


def _exclude(first: Placement, second: Placement) -> bool:
    """Whether the two are told apart: each has its `when`, or the second is for what is left over."""
    if first.when is not None and second.when is not None and first.when != second.when:
        return True
    otherwise = first.when is not None and second.when is None
    return (first.pattern != second.pattern or otherwise) and second.fits(first.pattern)


@dataclass(frozen=True, slots=True)
class _Wild:
    """Any character, or `many` of them or none; `dots`: also those between parts of a name."""

    dots: bool
    many: bool


_Token = str | _Wild


def _tokens(pattern: str) -> tuple[_Token, ...]:
    found: list[_Token] = []
    for place, character in enumerate(pattern):
        dots = place == 0
        found += [_Wild(dots, False), _Wild(dots, True)] if character == "*" else [character]
    return tuple(found)


def _shared(one: _Token, other: _Token) -> str | None:
    """A character that is both, or None if there is none."""
    if isinstance(one, _Wild):
        one, other = other, one
    if isinstance(one, _Wild):
        return "x"
    if isinstance(other, _Wild):
        return one if other.dots or one != "." else None
    return one if one == other else None


def common(one: str, other: str) -> str | None:
    """A name that fits both of two patterns, or None if there is none."""
    left, right = _tokens(one), _tokens(other)

    @cache
    def fit(i: int, j: int) -> str | None:
        """A name that fits the rest of both patterns."""
        if i == len(left) and j == len(right):
            return ""
        a = left[i] if i < len(left) else None
        b = right[j] if j < len(right) else None
        ways = [(i + 1, j, "")] if isinstance(a, _Wild) and a.many else []
        ways += [(i, j + 1, "")] if isinstance(b, _Wild) and b.many else []
        taken = None if a is None or b is None else _shared(a, b)
        if taken is not None:
            stay = [isinstance(each, _Wild) and each.many for each in (a, b)]
            if not all(stay):
                ways.append((i + (not stay[0]), j + (not stay[1]), taken))
        for further, along, character in ways:
            rest = fit(further, along)
            if rest is not None:
                return character + rest
        return None

    return fit(0, 0)


RULE = LintRule("TS0470", "overlapping-patterns", check)

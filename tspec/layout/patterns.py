"""Names that fit two patterns of tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tspec.resolve.program.sharding import LayoutDeclaration, Placement


@dataclass(frozen=True, slots=True)
class _Wild:
    """Any character but brackets, or `many` of them or none; `dots`: also those between parts of a name."""

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
        return one if one not in ("[]" if other.dots else ".[]") else None
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


# --- containers of numbered modules --------------------------------------------------------------

_NUMBERED = re.compile(r"([^.*\[\]]+)\.\d+(?=\.|$)")
_CONTAINER = re.compile(r"([^.*\[\]]+)\.\*(?=\.|$)")
_OF_MODULES = ("input", "input_grad", "output", "output_grad")
"""Kinds whose names end in a module; names of other kinds end in a tensor of a module."""


def numbered_containers(layout: LayoutDeclaration) -> frozenset[str]:
    """The containers, such as `layers`, whose modules are numbered, as the layout shows.

    Stages show it by numbers. Patterns show it by numbers or by names within: the `*` in
    `layers.*.wq.weight` is a module with submodules, so that no `wq` stands beside it.
    """
    return frozenset((*_of_stages(layout), *_of_patterns(layout.placements)))


def _of_stages(layout: LayoutDeclaration) -> Iterator[str]:
    for each in (each for stage in layout.stages for each in stage.modules):
        yield from _NUMBERED.findall(each.prefix if each.numbers is None else f"{each.prefix}0")


def _of_patterns(placements: tuple[Placement, ...]) -> Iterator[str]:
    for place in placements:
        yield from _NUMBERED.findall(place.pattern)
        within = 1 if place.kind in _OF_MODULES else 2
        for found in _CONTAINER.finditer(place.pattern):
            if place.pattern.count(".", found.end()) >= within:
                yield found[1]


def with_numbers(pattern: str, containers: frozenset[str]) -> str:
    """A pattern with a number for each `*` that stands for a module of such a container."""
    return _CONTAINER.sub(
        lambda found: f"{found[1]}.0" if found[1] in containers else found[0], pattern
    )

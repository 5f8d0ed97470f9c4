"""Folds over a longer time constrain the same folds over a shorter one.

The shorter span is a part of the longer one, and complete where that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import z3

from tspec.builtin.folds import FOLDS
from tspec.logic.encoded import Encoded
from tspec.logic.numbers import Numbers
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr

ALL_OF_THEM = frozenset({"all", "same", "distinct"})
"""Folds that are true of the shorter span where they are of the longer one."""


def longer_and_shorter(
    leaves: Mapping[tuple[Expr, bool], Encoded], numbers: Numbers
) -> Iterator[z3.BoolRef]:
    """The constraints between each two folds of one value over times of one unit."""
    spans: dict[tuple[object, ...], list[tuple[int, Encoded]]] = {}
    for (expr, start), leaf in leaves.items():
        if isinstance(expr, rules.Fold) and expr.over is not None:
            key: tuple[object, ...] = (expr.name, expr.value, expr.over.unit, start)
            spans.setdefault(key, []).append((expr.over.count, leaf))
    for key, found in spans.items():
        ordered = sorted(found, key=lambda each: each[0])
        for (_, short), (_, long) in combinations(ordered, 2):
            yield from _related(str(key[0]), short, long, numbers)


def _related(name: str, short: Encoded, long: Encoded, numbers: Numbers) -> Iterator[z3.BoolRef]:
    if name in ALL_OF_THEM:
        yield z3.Implies(long.true, short.true)
        yield z3.Implies(short.false, long.false)
        return
    if name == "any":
        yield z3.Implies(short.true, long.true)
        yield z3.Implies(long.false, short.false)
        return
    yield z3.Implies(long.known, short.known)
    longer = FOLDS[name].longer
    if longer is not None:
        small, large = (short, long) if longer == "grows" else (long, short)
        yield z3.Implies(long.known, numbers.in_order(small.value, large.value))

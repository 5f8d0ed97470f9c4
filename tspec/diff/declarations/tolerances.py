"""Compares two tolerances of an equivalence: which one allows more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

from tspec.builtin.functions import ULPS
from tspec.resolve.program.trials import (
    DEFAULT_SAMPLES,
    Absolute,
    Combined,
    Noise,
    Number,
    Relative,
    Tolerance,
    Ulp,
)

Order = Literal["equivalent", "tightened", "loosened", "changed"]


@dataclass(frozen=True, slots=True)
class _Sum:
    """A tolerance as a sum: a number, and a factor for each noise in it."""

    number: float
    noises: tuple[tuple[Noise, float], ...] = ()

    def plus(self, other: _Sum) -> _Sum:
        times = dict(self.noises)
        for noise, factor in other.noises:
            times[noise] = times.get(noise, 0.0) + factor
        return _Sum(self.number + other.number, tuple(times.items()))

    def by(self, factor: float) -> _Sum:
        return _Sum(
            self.number * factor, tuple((noise, times * factor) for noise, times in self.noises)
        )


_ZERO = _Sum(0.0)


class _NoSum(Exception):
    """The tolerance is a product of noises, or a quotient by one."""


def order(old: Tolerance, new: Tolerance) -> Order:
    """The direction of a tolerance's change.

    A `noise` is known to allow more than another one if it has more samples, or a higher floor.
    """
    try:
        parts = zip(_sums(old), _sums(new), strict=True)
        found = {way for pair in parts for way in _ways(*pair)}
    except _NoSum:
        return "equivalent" if old == new else "changed"
    match sorted(found):
        case []:
            return "equivalent"
        case ["loosened"]:
            return "loosened"
        case ["tightened"]:
            return "tightened"
    return "changed"


def _ways(old: _Sum, new: _Sum) -> set[Order]:
    """The directions of the changes of a sum's numbers."""
    before, after = dict(old.noises), dict(new.noises)
    for noise in [each for each in before if before[each] == after.get(each)]:
        del before[noise], after[noise]
    numbers = [(old.number, new.number)]
    if before.keys() == after.keys():
        numbers += [(before[noise], after[noise]) for noise in before]
    elif len(before) > 1 or len(after) > 1:
        return {"changed"}
    elif not before or not after:
        [times] = (before or after).values()
        numbers.append((0.0, times) if after else (times, 0.0))
    else:
        [(first, less)], [(second, more)] = before.items(), after.items()
        if first.perturb != second.perturb or (first.floor is None) != (second.floor is None):
            return {"changed"}
        numbers += [(less, more), (_samples(first), _samples(second)), _floors(first, second)]
    ways: set[Order] = set()
    for one, other in numbers:
        if one != other:
            ways.add("loosened" if one < other else "tightened")
    return ways


def _samples(noise: Noise) -> float:
    return noise.samples or DEFAULT_SAMPLES


def _floors(old: Noise, new: Noise) -> tuple[float, float]:
    if old.floor is None or new.floor is None:
        return 0.0, 0.0
    return _sums(old.floor)[0].number, _sums(new.floor)[0].number


def _sums(tolerance: Tolerance) -> tuple[_Sum, _Sum]:
    """The tolerance relative to the tensor, and the one in its unit."""
    match tolerance:
        case Number(value):
            return _Sum(value), _ZERO
        case Ulp(dtype):
            return _Sum(ULPS.get(dtype, 0.0)), _ZERO
        case Noise():
            return _Sum(0.0, ((tolerance, 1.0),)), _ZERO
        case Relative(value):
            return _sums(value)[0], _ZERO
        case Absolute(value):
            return _ZERO, _sums(value)[0]
        case Combined("+", left, right):
            first, second = _sums(left), _sums(right)
            return first[0].plus(second[0]), first[1].plus(second[1])
        case Combined("*", left, right):
            first, second = _sums(left), _sums(right)
            if not _is_number(second):
                first, second = second, first
            return _scaled(first, second, lambda by: by)
        case Combined(_, left, right):
            return _scaled(_sums(left), _sums(right), lambda by: 1 / by if by else inf)


def _is_number(sums: tuple[_Sum, _Sum]) -> bool:
    return not sums[0].noises and sums[1] == _ZERO


def _scaled(
    sums: tuple[_Sum, _Sum], by: tuple[_Sum, _Sum], factor: Callable[[float], float]
) -> tuple[_Sum, _Sum]:
    if not _is_number(by):
        raise _NoSum
    times = factor(by[0].number)
    return sums[0].by(times), sums[1].by(times)

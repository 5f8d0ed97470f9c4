"""Arithmetic of float64 as IEEE 754 has it, where Python raises."""

from __future__ import annotations

import math

INF = math.inf
NAN = math.nan


def as_float(number: int | float) -> float:
    """A number as float64; an int beyond its range is an infinity."""
    try:
        return float(number)
    except OverflowError:
        return INF if number > 0 else -INF


def ratio(x: float, y: float) -> float:
    """Division: by zero an infinity, or NaN."""
    if y != 0.0:
        return x / y
    if x == 0.0 or math.isnan(x):
        return NAN
    return math.copysign(INF, x) * math.copysign(1.0, y)

"""Curves over places in a run, such as the error of each tensor against its depth, as values without a drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Curve:
    """One value for each place of a figure; None for no value.

    The values at the places in `marked` are findings. A `limit` is drawn as a line.
    """

    name: str
    values: tuple[float | None, ...]
    marked: frozenset[int] = frozenset()
    role: Literal["values", "others", "limit"] = "values"


@dataclass(frozen=True, slots=True)
class Figure:
    """Curves on a logarithmic scale over named places, from left to right."""

    title: str
    unit: str
    places: tuple[str, ...]
    curves: tuple[Curve, ...]

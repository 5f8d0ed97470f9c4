"""The allowed distance of a candidate's tensor from the reference's, from the text of `within`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from tspec.resolve.program.trials import (
    Absolute,
    Combined,
    Noise,
    Number,
    Relative,
    Tolerance,
    Ulp,
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """A tolerance in numbers: relative to the tensor's norm, and a root mean square over its elements."""

    relative: float
    absolute: float = 0.0


def allowed(tolerance: Tolerance, noise: Callable[[Noise], float]) -> Allowed:
    """The error that a tolerance allows, where `noise` gives the relative round-off of the tensor.

    A number alone, and `ulp`, are relative. Raises ValueError for a product or quotient of two
    tolerances in the unit of the tensor.
    """
    match tolerance:
        case Number(value):
            return Allowed(value)
        case Ulp(dtype):
            return Allowed(epsilon(dtype))
        case Noise():
            return Allowed(noise(tolerance))
        case Relative(value):
            return Allowed(allowed(value, noise).relative)
        case Absolute(value):
            return Allowed(0.0, allowed(value, noise).relative)
        case Combined("+", left, right):
            one, other = allowed(left, noise), allowed(right, noise)
            return Allowed(one.relative + other.relative, one.absolute + other.absolute)
        case Combined("*", left, right):
            one, other = allowed(left, noise), allowed(right, noise)
            if other.absolute:
                one, other = other, one
            return _scaled(one, other, other.relative)
        case Combined(_, left, right):
            one, other = allowed(left, noise), allowed(right, noise)
            return _scaled(one, other, 1 / other.relative if other.relative else float("inf"))


def _scaled(one: Allowed, factor: Allowed, by: float) -> Allowed:
    if factor.absolute:
        raise ValueError("a tolerance is not multiplied or divided by an `atol`")
    return Allowed(one.relative * by, one.absolute * by)


def epsilon(dtype: str) -> float:
    """The relative distance of neighbouring numbers of a dtype near 1; 0 for a dtype that is not
    floating.
    """
    of = getattr(torch, dtype)
    return float(torch.finfo(of).eps) if of.is_floating_point else 0.0


def number(tolerance: Tolerance) -> float:
    """A tolerance that holds no noise, as a number."""
    return allowed(tolerance, _no_noise).relative


def _no_noise(noise: Noise) -> float:
    raise ValueError("`noise` stands within itself")

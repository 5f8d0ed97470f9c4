"""The value of an unknown in a model of z3, as a Python value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import z3

from tspec.logic.encoded import Encoded
from tspec.logic.sorts import Sorts
from tspec.trace.model import Missing


@dataclass(frozen=True, slots=True)
class SubjectIdentity:
    """A subject or call; only its identity is known."""

    number: int


class OpaqueValue(Enum):
    """A value that exists and that z3 does not analyse: a tensor, a list, a map."""

    SOMETHING = "present"


def python_value(
    model: z3.ModelRef, leaf: Encoded, sorts: Sorts, things: dict[str, SubjectIdentity]
) -> bool | int | float | str | SubjectIdentity | Missing | OpaqueValue:
    """The value, or why it has none."""
    if not _holds(model, leaf.known):
        return Missing.ABSENT if _holds(model, leaf.absent) else Missing.NOT_RECORDED
    value = model.eval(leaf.value, model_completion=True)
    sort = leaf.value.sort()
    if sort == sorts.bool:
        return bool(z3.is_true(value))
    if sort == sorts.int:
        return int(value.as_long())
    if sort == sorts.float:
        return float_value(value)
    if sort == sorts.text:
        return _unescaped(value.as_string())
    if sort == sorts.thing:
        return things.setdefault(str(value), SubjectIdentity(len(things)))
    return OpaqueValue.SOMETHING


def _holds(model: z3.ModelRef, condition: z3.BoolRef) -> bool:
    return bool(z3.is_true(model.eval(condition, model_completion=True)))


def float_value(value: Any) -> float:
    """The float64 of a numeral of z3."""
    if value.isNaN():
        return float("nan")
    if value.isInf():
        return float("-inf") if value.isNegative() else float("inf")
    if value.isZero():
        return -0.0 if value.isNegative() else 0.0
    sign = -1.0 if value.sign() else 1.0
    significand = float(value.significand_as_long()) / 2**52
    exponent = value.exponent_as_long(biased=True)
    if exponent == 0:
        return sign * significand * 2.0**-1022
    return float(sign * (1.0 + significand) * 2.0 ** (exponent - 1023))


def _unescaped(text: str) -> str:
    r"""z3 writes characters beyond ASCII as `\u{hex}`."""
    found, rest = "", text
    while (place := rest.find("\\u{")) >= 0:
        end = rest.index("}", place)
        found, rest = found + rest[:place] + chr(int(rest[place + 3 : end], 16)), rest[end + 1 :]
    return found + rest

"""The functions of known values that rules may call: `log(x)`, `isinstance(m, norms)`, `divisible(x, by: 8)`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from tspec.runtime.edges import Missing
from tspec.runtime.values import INF, NAN, NOT_RECORDED, as_float, first_missing, is_number

ULPS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "float8_e5m2fnuz": 2.0**-2,
}
"""The gap between 1 and the next number of each dtype."""


def call(name: str, *arguments: Any) -> Any:
    """A function by its name in the language; missing where an argument is."""
    why = first_missing(arguments)
    if why is not None:
        return why
    if name == "divisible":
        return _divisible(*arguments)
    if name in _OF_STRINGS:
        return (
            _OF_STRINGS[name](*arguments)
            if all(isinstance(a, str) for a in arguments)
            else NOT_RECORDED
        )
    (value,) = arguments
    if name == "ulp" and isinstance(value, str):
        return ULPS.get(value, NOT_RECORDED)
    return _OF_NUMBERS[name](value) if is_number(value) else NOT_RECORDED


def _divisible(value: Any, by: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_divisible(item, by) for item in value)
    if not (is_number(value) and is_number(by)):
        return NOT_RECORDED
    return by != 0 and math.isfinite(value) and value % by == 0


_OF_STRINGS: dict[str, Callable[[str, str], bool]] = {
    "endswith": str.endswith,
    "startswith": str.startswith,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
}


def _sqrt(x: Any) -> float:
    return NAN if x < 0 else math.sqrt(x)


def _log(x: Any) -> float:
    if x == 0:
        return -INF
    return math.log(x) if x > 0 else NAN


def _exp(x: Any) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INF


def _whole(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    """Rounding gives an int; NaN and infinities have none, and stay."""
    return lambda x: function(x) if math.isfinite(x) else x


_OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "abs": abs,
    "sqrt": _sqrt,
    "log": _log,
    "exp": _exp,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "round": _whole(round),
    "ulp": lambda x: math.ulp(as_float(x)),
}


def is_of_class(classes: Any, wanted: Any) -> Any:
    """`isinstance`: one of the dotted paths in `classes` is `wanted`, or one of a tuple of paths."""
    why = first_missing((classes, wanted))
    if why is not None:
        return why
    if not isinstance(classes, str):
        return NOT_RECORDED
    paths = classes.split(" ")
    return any(each in paths for each in (wanted if isinstance(wanted, tuple) else (wanted,)))


def device_part(device: Any, part: str) -> Any:
    """`d.type` and `d.index`: what stands before and after the colon."""
    if device.__class__ is Missing:
        return device
    if isinstance(device, tuple):
        return tuple(device_part(one, part) for one in device)
    if not isinstance(device, str):
        return NOT_RECORDED
    head, colon, tail = device.partition(":")
    if part == "type":
        return head
    if not colon:
        return Missing.ABSENT
    return int(tail) if tail.isdigit() else tail

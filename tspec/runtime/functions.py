"""The functions of known values that rules may call: `log(x)`, `isinstance(m, norms)`, `divisible(x, by: 8)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tspec.builtin.functions import FUNCTIONS, BuiltinFunction
from tspec.runtime.edges import Missing
from tspec.runtime.values import NOT_RECORDED, first_missing, is_number
from tspec.values import Datum

_FITS: Mapping[str, Callable[[Datum], bool]] = {
    "number": is_number,
    "text": lambda value: isinstance(value, str),
    "dtype": lambda value: isinstance(value, str),
}


def apply(name: str, *arguments: Datum) -> Datum:
    """A function by its name in the language; missing where an argument is or does not fit."""
    why = first_missing(arguments)
    return _of_known(FUNCTIONS[name], arguments) if why is None else why


def _of_known(function: BuiltinFunction, arguments: Sequence[Datum]) -> Datum:
    if function.maps and isinstance(arguments[0], tuple):
        return tuple(_of_known(function, (item, *arguments[1:])) for item in arguments[0])
    of = function.of
    assert of is not None, function.name
    for kind, value in zip(function.takes, arguments, strict=True):
        if not _FITS[kind](value):
            return NOT_RECORDED
    found = of(*arguments)
    return NOT_RECORDED if found is None else found


def is_of_class(classes: Datum, wanted: Datum) -> Datum:
    """`isinstance`: one of the dotted paths in `classes` is `wanted`, or one of a tuple of paths."""
    why = first_missing((classes, wanted))
    if why is not None:
        return why
    if not isinstance(classes, str):
        return NOT_RECORDED
    paths = classes.split(" ")
    return any(each in paths for each in (wanted if isinstance(wanted, tuple) else (wanted,)))


def device_part(device: Datum, part: str) -> Datum:
    """`d.type` and `d.index`: the parts before and after the colon."""
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

"""How many steps schedules were built for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import FunctionType
from typing import Any

from tspec.runtime.live.convert import scalar
from tspec.runtime.live.entities.kind import ABSENT, asked

_LENGTHS = {
    "CosineAnnealingLR": "T_max",
    "OneCycleLR": "total_steps",
    "PolynomialLR": "total_iters",
}
"""Class name of a scheduler -> its attribute that holds the number of steps it was built for."""


def total_steps(scheduler: Any) -> Any:
    """The number of steps that a scheduler was built for; absent if it does not record that number."""
    kinds = {base.__name__ for base in type(scheduler).__mro__}
    for kind, name in _LENGTHS.items():
        if kind in kinds:
            length = scalar(asked(scheduler, name))
            return int(length) if isinstance(length, (int, float)) else length
    return ABSENT


def steps_left(scheduler: Any) -> int | None:
    """A scheduler's total number of steps, minus those it has made and the one that begins.

    None if it has no total.
    """
    total, made = total_steps(scheduler), scalar(asked(scheduler, "last_epoch"))
    if not isinstance(total, int) or not isinstance(made, int):
        return None
    return total - made - 1


def largest_number(scheduler: Any) -> Any:
    """The largest whole number that the functions of a `LambdaLR` work with; absent of other schedules.

    Only what lies in dictionaries is read: no code of the script runs.
    """
    functions = asked(scheduler, "lr_lambdas")
    if not isinstance(functions, list):
        return ABSENT
    numbers = [number for each in functions for number in _numbers(each)]
    return max(numbers, default=ABSENT)


def _numbers(function: Any) -> Iterator[int]:
    """The whole numbers that a function, or an object that is called, knows by a name."""
    values: list[Any] = []
    while isinstance(function, partial):
        values += [*function.args, *function.keywords.values()]
        function = function.func
    if isinstance(function, FunctionType):
        names = function.__code__.co_names
        values += [function.__globals__.get(name) for name in names]
        held = [_content(cell) for cell in function.__closure__ or ()]
        values += [*held, *(function.__defaults__ or ())]
        values += [_fields(each).get(name) for each in held for name in names]
    else:
        values += _fields(function).values()
    return (value for value in values if type(value) is int)


def _content(cell: Any) -> Any:
    """What a variable of a closure holds; None if it has not been assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _fields(thing: Any) -> dict[str, Any]:
    fields = asked(thing, "__dict__")
    return fields if isinstance(fields, dict) else {}

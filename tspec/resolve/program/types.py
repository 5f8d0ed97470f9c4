"""The types of tspec's expressions: plain frozen values, compared by content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

Simple = Literal[
    "bool",
    "int",
    "float",
    "string",
    "dtype",
    "device",
    "shape",
    "tensor",
    "class",
    "scalar",
    "group",
    "difference",
]
"""A type with a name.

`scalar` is a bool, int, float or string; only the recording knows which. `difference` is that
of a tensor between the edges of a window, read only through features.
"""


class _Spelled:
    __slots__ = ()

    def __str__(self) -> str:
        return _spelled(cast("Type", self))


@dataclass(frozen=True, slots=True)
class Scalar(_Spelled):
    """A simple type, such as `int` or `tensor`."""

    name: Simple


@dataclass(frozen=True, slots=True)
class Enum(_Spelled):
    """An enumeration, such as `train | eval`."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entity(_Spelled):
    """A subject of a kind: its value is the subject's canonical name."""

    kind: str


@dataclass(frozen=True, slots=True)
class CallOf(_Spelled):
    """One call of an event."""

    event: str


@dataclass(frozen=True, slots=True)
class ListOf(_Spelled):
    """A list; the fields of a collection are one."""

    item: Type


@dataclass(frozen=True, slots=True)
class SetOf(_Spelled):
    """A set."""

    item: Type


@dataclass(frozen=True, slots=True)
class MapOf(_Spelled):
    """A map, such as a module's plain attributes."""

    key: Type
    value: Type


@dataclass(frozen=True, slots=True)
class Optional(_Spelled):
    """A value that may be absent and must be guarded by `present`."""

    item: Type


@dataclass(frozen=True, slots=True)
class Quantity(_Spelled):
    """A number with a unit, such as `10 steps`."""

    unit: str


Type = Scalar | Enum | Entity | CallOf | ListOf | SetOf | MapOf | Optional | Quantity


def _spelled(type_: Type) -> str:
    """A type as the language writes it, or a message names it."""
    match type_:
        case Scalar(name=name) | Entity(kind=name) | Quantity(unit=name):
            return name
        case Enum(members=members):
            return " | ".join(members)
        case CallOf(event=event):
            return f"call of {event}"
        case ListOf(item=item):
            return f"list<{item}>"
        case SetOf(item=item):
            return f"set<{item}>"
        case MapOf(key=key, value=value):
            return f"map<{key}, {value}>"
        case Optional(item=item):
            return f"{item}?"


BOOL = Scalar("bool")
INT = Scalar("int")
FLOAT = Scalar("float")
STRING = Scalar("string")
DTYPE = Scalar("dtype")
DEVICE = Scalar("device")
SHAPE = Scalar("shape")
TENSOR = Scalar("tensor")
CLASS = Scalar("class")
SCALAR = Scalar("scalar")
GROUP = Scalar("group")
DIFFERENCE = Scalar("difference")


# --- queries on types -----------------------------------------------------------------------------


def plain(of: Type) -> Type:
    """The type without its question mark."""
    return of.item if isinstance(of, Optional) else of


def item_of(of: Type) -> Type | None:
    """The type of a collection's elements; None for other types. A shape holds ints."""
    of = plain(of)
    if isinstance(of, ListOf | SetOf):
        return of.item
    return INT if of == SHAPE else None


def is_number(of: Type) -> bool:
    """True if arithmetic applies to the type."""
    return plain(of) in (INT, FLOAT, SCALAR)


def innermost(of: Type) -> Type:
    """The type without `?`, `list` and `set`, however they are nested."""
    while isinstance(of, Optional | ListOf | SetOf):
        of = of.item
    return of


def is_collection(of: Type) -> bool:
    """A list or a set."""
    return isinstance(plain(of), ListOf | SetOf)


def is_tensor(of: Type) -> bool:
    """One tensor, or one that may be absent."""
    return plain(of) == TENSOR


def holds_tensors(of: Type) -> bool:
    """A tensor, or a list, set or map of tensors."""
    inner = innermost(of)
    return inner == TENSOR or (isinstance(inner, MapOf) and holds_tensors(inner.value))

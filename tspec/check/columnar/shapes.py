"""The shape of the values in a query's column, and the SQL that compares them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tspec.values import Missing

Name = Literal["bool", "int", "float", "string", "subject", "call", "tensor", "mixed", "nothing"]

_SQL = {
    "bool": "BOOLEAN", "int": "BIGINT", "float": "DOUBLE", "string": "VARCHAR",
    "subject": "UBIGINT", "call": "BIGINT", "tensor": "BIGINT", "mixed": "VARCHAR",
    "nothing": "BOOLEAN",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SingleShape:
    """A single value.

    A subject is the hash of its kind and name, a call its place in the trace, a tensor its digest.
    A value of `nothing` is never known. A value of `mixed` has any shape and is the text of its bits,
    which only `same` and `distinct` read. `kind` is the kind of a subject, or the possible events of a call.
    """

    name: Name
    kind: str = ""


@dataclass(frozen=True, slots=True)
class ListShape:
    """A list (or set, in its order) of structs `{v, m}`: a value, or why it is missing."""

    item: Shape
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class MapShape:
    """A map, as JSON text of an object."""


Shape: TypeAlias = SingleShape | ListShape | MapShape

BOOL, INT, FLOAT, STRING = (
    SingleShape("bool"),
    SingleShape("int"),
    SingleShape("float"),
    SingleShape("string"),
)
TENSOR, MIXED, NOTHING = SingleShape("tensor"), SingleShape("mixed"), SingleShape("nothing")
NUMBERS = (INT, FLOAT)

ABSENT, NOT_RECORDED, NO_HISTORY = 1, 2, 3
"""Why a value is missing, as a number in a column of reasons; NULL where it is known."""
REASONS = {
    ABSENT: Missing.ABSENT.value,
    NOT_RECORDED: Missing.NOT_RECORDED.value,
    NO_HISTORY: Missing.NO_HISTORY.value,
}


NO_REASON = "NULL::TINYINT"
"""The reason of a value that is known in every row."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a relation: `value` and `why` are SQL, columns or literals; `why` is NULL if known."""

    value: str
    why: str
    shape: Shape

    @property
    def is_known(self) -> bool:
        """True if the value is known in every row."""
        return self.why == NO_REASON


def first_of(reasons: Sequence[str], otherwise: str = NO_REASON) -> str:
    """SQL of the first reason that is not NULL, else `otherwise`."""
    every = [reason for reason in (*reasons, otherwise) if reason != NO_REASON]
    if not every:
        return NO_REASON
    return every[0] if len(every) == 1 else f"coalesce({', '.join(every)})"


class NoInstances(Exception):
    """A rule has no instances in a trace, so that nothing need be read."""


class Unsupported(Exception):
    """A rule has no query; the reference interpreter decides it, and the notes say so."""


def call_of(events: Iterable[str]) -> SingleShape:
    """The shape of calls of some events."""
    return SingleShape("call", "\n".join(sorted(set(events))))


def events_of(shape: SingleShape) -> list[str]:
    """The possible events of calls of a shape."""
    return shape.kind.split("\n")


def sql_type(shape: Shape) -> str:
    """The SQL type of a shape's values."""
    if isinstance(shape, ListShape):
        return f"STRUCT(v {sql_type(shape.item)}, m TINYINT)[]"
    return "VARCHAR" if isinstance(shape, MapShape) else _SQL[shape.name]


def missing(why: int | str, shape: Shape = NOTHING) -> Cell:
    """A cell that holds nothing."""
    return Cell(f"NULL::{sql_type(shape)}", f"{why}::TINYINT", shape)


def bits(sql: str, shape: Shape) -> str:
    """SQL of the value that `same` and `distinct` compare: the bits of a float, other values as
    they are.
    """
    if shape == FLOAT:
        return f"({sql})::BIT::BIGINT"
    if isinstance(shape, ListShape):
        return f"list_transform({sql}, lambda it: {bits('it.v', shape.item)})"
    if isinstance(shape, MapShape):
        return f"j_pairs({sql})"
    return sql


def incomplete(sql: str, shape: Shape) -> str:
    """SQL that is true where a known value holds something missing."""
    if isinstance(shape, MapShape):
        return f"j_lacks({sql})"
    if not isinstance(shape, ListShape):
        return "false"
    inner = incomplete("it.v", shape.item)
    test = "it.m IS NOT NULL" + ("" if inner == "false" else f" OR {inner}")
    return f"coalesce(list_bool_or(list_transform({sql}, lambda it: {test})), false)"


def first_inside(sql: str, shape: Shape) -> str:
    """SQL of the first reason inside of a known value; `NO_REASON` if such values hold no others."""
    if isinstance(shape, MapShape):
        return f"CASE WHEN j_lacks({sql}) THEN {NOT_RECORDED}::TINYINT END"
    if not isinstance(shape, ListShape):
        return NO_REASON
    own = first_of(["it.m", first_inside("it.v", shape.item)])
    return f"list_filter(list_transform({sql}, lambda it: {own}), lambda m: m IS NOT NULL)[1]"


def as_float(cell: Cell) -> str:
    """SQL of a number as float64."""
    return cell.value if cell.shape == FLOAT else f"({cell.value})::DOUBLE"

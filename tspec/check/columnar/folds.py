"""Folds of lists to one value, in order and in float64, so that they agree to the bit.

The counterpart of `tspec.check.interpret.folds`.
"""

from __future__ import annotations

from string import Formatter

from tspec.builtin.folds import FOLDS
from tspec.check.columnar.relation import Relation
from tspec.check.columnar.shapes import (
    ABSENT,
    BOOL,
    FLOAT,
    INT,
    NO_HISTORY,
    NOT_RECORDED,
    NOTHING,
    NUMBERS,
    Cell,
    ListShape,
    MapShape,
    Shape,
    bits,
    incomplete,
    sql_type,
)


def without_absent(relation: Relation, cell: Cell) -> Cell:
    """A list without its absent elements."""
    if not isinstance(cell.shape, ListShape):
        return cell
    kept = relation.column(f"list_filter({cell.value}, lambda it: coalesce(it.m, 0) <> {ABSENT})")
    return Cell(kept, cell.why, cell.shape)


def values(cell: Cell, shape: Shape | None = None) -> str:
    """SQL of the plain values of a list without missing elements."""
    assert isinstance(cell.shape, ListShape)
    wanted = sql_type(shape if shape is not None else cell.shape.item)
    return f"list_transform({cell.value}, lambda it: it.v::{wanted})"


def float_sum(floats: str) -> str:
    """SQL of the sum of floats in order."""
    return f"list_reduce({floats}, lambda a, b: a + b, 0.0::DOUBLE)"


def first_reason(value: str, shape: Shape, nested: bool = True) -> str:
    """SQL of the reason of the first element of a list that is missing (or holds something missing)."""
    assert isinstance(shape, ListShape)
    own = "it.m"
    if nested and isinstance(shape.item, ListShape | MapShape):
        own = f"coalesce(it.m, CASE WHEN {incomplete('it.v', shape.item)} THEN {NOT_RECORDED}::TINYINT END)"
    return f"list_filter(list_transform({value}, lambda it: {own}), lambda m: m IS NOT NULL)[1]"


def complete(relation: Relation, cell: Cell) -> Cell:
    """A list without absent elements, missing as a whole where one of the others is."""
    held = without_absent(relation, cell)
    if not isinstance(held.shape, ListShape):
        return Cell(f"NULL::{sql_type(ListShape(NOTHING))}", held.why, ListShape(NOTHING))
    why = relation.column(f"coalesce({held.why}, {first_reason(held.value, held.shape)})")
    return Cell(held.value, why, held.shape)


def of_list(relation: Relation, name: str, cell: Cell) -> Cell:
    """Fold the list that a value is; absent elements are left out of it."""
    if isinstance(cell.shape, MapShape) and name == "count":
        return Cell(relation.column(f"len(json_keys({cell.value}))"), cell.why, INT)
    if not isinstance(cell.shape, ListShape):
        why = relation.column(f"coalesce({cell.why}, {NOT_RECORDED}::TINYINT)")
        return Cell("NULL::BOOLEAN", why, BOOL if name in EARLY else NOTHING)
    held = without_absent(relation, cell)
    assert isinstance(held.shape, ListShape)
    if name == "count":
        why = relation.column(
            f"coalesce({held.why}, {first_reason(held.value, held.shape, False)})"
        )
        return relation.cell(f"CASE WHEN {why} IS NULL THEN len({held.value}) END", why, INT)
    return _fold(relation, name, held, "true")


def of_many(relation: Relation, name: str, cell: Cell, whole: str = "true") -> Cell:
    """Fold the values of a group's members, or of earlier instances; `whole` is SQL: none of these lacks."""
    assert isinstance(cell.shape, ListShape)
    if name != "count":
        return _fold(relation, name, cell, whole)
    reason = relation.column(
        f"coalesce({first_reason(without_absent(relation, cell).value, cell.shape, False)}, "
        f"CASE WHEN NOT {whole} THEN {NO_HISTORY}::TINYINT END)"
    )
    counted = "it.v IS NOT NULL AND it.v" if cell.shape.item == BOOL else "it.m IS NULL"
    count = f"len(list_filter({cell.value}, lambda it: {counted}))"
    return relation.cell(f"CASE WHEN {reason} IS NULL THEN {count} END", reason, INT)


def _fold(relation: Relation, name: str, cell: Cell, whole: str) -> Cell:
    assert isinstance(cell.shape, ListShape)
    inner = first_reason(cell.value, cell.shape)
    late = "" if whole == "true" else f", CASE WHEN NOT {whole} THEN {NO_HISTORY}::TINYINT END"
    lacking = relation.column(f"coalesce({cell.why}, {inner}{late})")
    if name in EARLY:
        early = relation.column(EARLY[name](cell))
        default = "false" if name == "any" else "true"
        value = relation.column(
            f"CASE WHEN {cell.why} IS NOT NULL THEN NULL WHEN {early} THEN {'true' if name == 'any' else 'false'} "
            f"WHEN {lacking} IS NULL THEN {default} END"
        )
        return Cell(value, relation.column(f"CASE WHEN {value} IS NULL THEN {lacking} END"), BOOL)
    if cell.shape.item not in NUMBERS:
        return _of_no_numbers(relation, name, cell, lacking)
    sql, shape = _numeric(relation, name, cell)
    value = relation.column(f"CASE WHEN {lacking} IS NULL THEN {sql} END")
    why = f"CASE WHEN {value} IS NULL THEN coalesce({lacking}, {NO_HISTORY}::TINYINT) END"
    return Cell(value, relation.column(why), shape)


def _of_no_numbers(relation: Relation, name: str, cell: Cell, lacking: str) -> Cell:
    """Only an empty list can be folded as numbers."""
    empty = f"{lacking} IS NULL AND len({cell.value}) = 0"
    value = f"CASE WHEN {empty} THEN 0::BIGINT END" if name == "sum" else "NULL::BIGINT"
    fallback = f"CASE WHEN len({cell.value}) = 0 THEN {NO_HISTORY} ELSE {NOT_RECORDED} END::TINYINT"
    why = f"coalesce({lacking}, {fallback})"
    if name == "sum":
        why = f"CASE WHEN {empty} THEN NULL ELSE {why} END"
    return relation.cell(value, why, INT)


# --- folds that some known values decide --------------------------------------------------------


def _known_bits(cell: Cell) -> str:
    """The bits of the elements that are known as a whole."""
    assert isinstance(cell.shape, ListShape)
    lacking = incomplete("it.v", cell.shape.item)
    test = "it.m IS NULL" + ("" if lacking == "false" else f" AND NOT {lacking}")
    kept = f"list_filter({cell.value}, lambda it: {test})"
    return f"list_transform({kept}, lambda it: {bits('it.v', cell.shape.item)})"


def _different(cell: Cell) -> str:
    return f"len(list_distinct({_known_bits(cell)})) > 1"


def _repeated(cell: Cell) -> str:
    known = _known_bits(cell)
    return f"len(list_distinct({known})) < len({known})"


def _some_true(cell: Cell) -> str:
    return _bools(cell, "true")


def _some_false(cell: Cell) -> str:
    return _bools(cell, "false")


def _bools(cell: Cell, value: str) -> str:
    assert isinstance(cell.shape, ListShape)
    if cell.shape.item != BOOL:
        return "false"
    return f"coalesce(list_contains(list_transform({cell.value}, lambda it: it.v), {value}), false)"


EARLY = {"same": _different, "distinct": _repeated, "any": _some_true, "all": _some_false}


# --- folds of numbers ---------------------------------------------------------------------------


def _numeric(relation: Relation, name: str, cell: Cell) -> tuple[str, Shape]:
    """SQL of a fold of known numbers as its row writes it, NULL of none, and its shape."""
    assert isinstance(cell.shape, ListShape)
    shape = cell.shape.item
    plain = relation.column(values(cell))
    row = FOLDS[name]
    ints = shape != FLOAT
    template = row.sql_of_ints if ints and row.sql_of_ints else row.sql
    found = {"values": plain, "floats": f"{plain}::DOUBLE[]" if ints else plain}
    for _, part, _, _ in Formatter().parse(template):
        if part is not None and part in FOLDS:
            found[part] = relation.column(_numeric(relation, part, cell)[0])
    return template.format_map(found), INT if ints and row.result == "number" else FLOAT

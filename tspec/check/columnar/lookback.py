"""Looks at other instances: earlier ones of the same subjects, and the same one on other ranks.

Both are window functions over the instances' columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from tspec.builtin.folds import OF_NUMBERS
from tspec.check.columnar import folds
from tspec.check.columnar.facts import Facts
from tspec.check.columnar.relation import Relation
from tspec.check.columnar.scope import GroupColumns, HistoryColumns, QueryScope
from tspec.check.columnar.shapes import (
    ABSENT,
    BOOL,
    INT,
    NO_HISTORY,
    NO_REASON,
    NOT_RECORDED,
    NOTHING,
    Cell,
    ListShape,
    SingleShape,
    Unsupported,
    bits,
    sql_type,
)
from tspec.resolve.program.queries import names_call
from tspec.resolve.program.rules import Duration, Expr


def previous(scope: QueryScope, cell: Cell) -> Cell:
    """The value at the instance before."""
    history = _history(scope)
    over = f"OVER (PARTITION BY {history.key} ORDER BY {history.number})"
    return scope.relation.cell(
        f"lag({cell.value}) {over}",
        f"CASE WHEN {history.number} = 1 THEN {NO_HISTORY}::TINYINT ELSE lag({cell.why}) {over} END",
        cell.shape,
    )


def first(scope: QueryScope, cell: Cell, expr: Expr) -> Cell:
    """The value at the first instance; if a call is read, at the first one on this rank."""
    history = _history(scope)
    over = f"OVER (PARTITION BY {history.key} ORDER BY {history.number})"
    if names_call(expr):
        over = f"OVER (PARTITION BY rank ORDER BY {history.rank_first})"
    return scope.relation.cell(
        f"first_value({cell.value}) {over}", f"first_value({cell.why}) {over}", cell.shape
    )


def over(scope: QueryScope, name: str, cell: Cell, duration: Duration) -> Cell:
    """A fold of the values at this and the earlier instances within a duration."""
    history, relation = _history(scope), scope.relation
    unit = f"u_{duration.unit}"
    parts = f"PARTITION BY {history.key} ORDER BY"
    if duration.unit != "step":
        _check_order(scope.facts, relation, history, unit)
    start = relation.column(
        f"min({history.number}) OVER ({parts} {unit} "
        f"RANGE BETWEEN {duration.count - 1} PRECEDING AND CURRENT ROW)"
    )
    stride = 1
    if history.every is not None and history.every.unit == duration.unit:
        stride = history.every.count
    since = relation.column(f"first_value({unit}) OVER ({parts} {history.number})")
    whole = relation.column(f"({since} <= {unit} - {duration.count} + {stride})")
    back = f"ROWS BETWEEN ({history.number} - {start}) PRECEDING AND CURRENT ROW"
    rows = f"OVER ({parts} {history.number} {back})"
    if isinstance(cell.shape, SingleShape) and name not in OF_NUMBERS:
        return _reckoned(relation, name, cell, Frames(rows, whole, start, history))
    return folds.of_many(relation, name, _gathered(relation, cell, rows), whole)


@dataclass(frozen=True, slots=True)
class Frames:
    """The earlier instances of each row: the window clause, whether they are all, the first one's number."""

    rows: str
    whole: str
    start: str
    history: HistoryColumns


def _reckoned(relation: Relation, name: str, cell: Cell, frames: Frames) -> Cell:
    """Folds that need no order are reckoned without gathering values, which may be an epoch's.

    Two equal values are known from the place of the value's equal before it.
    """
    value, why, rows = cell.value, cell.why, frames.rows
    late = f"CASE WHEN NOT {frames.whole} THEN {NO_HISTORY}::TINYINT END"
    if name == "count":
        lacking = f"first_value(CASE WHEN {why} <> {ABSENT} THEN {why} END IGNORE NULLS) {rows}"
        reason = relation.column(f"coalesce({lacking}, {late})")
        counted = f"{value}" if cell.shape == BOOL else f"{why} IS NULL"
        count = f"count(*) FILTER ({counted}) {rows}"
        return relation.cell(f"CASE WHEN {reason} IS NULL THEN {count} END", reason, INT)
    reason = relation.column(f"coalesce(first_value({why} IGNORE NULLS) {rows}, {late})")
    if name in ("any", "all"):
        test = value if name == "any" else f"NOT {value}"
        early = "false" if cell.shape != BOOL else f"coalesce(bool_or({test}) {rows}, false)"
    else:
        key = relation.column(f"CASE WHEN {why} IS NULL THEN {bits(value, cell.shape)} END")
        if name == "same":
            early = f"coalesce(min({key}) {rows} <> max({key}) {rows}, false)"
        else:
            last = relation.column(
                f"CASE WHEN {key} IS NOT NULL THEN lag({frames.history.number}) OVER (PARTITION BY "
                f"{frames.history.key}, {key} ORDER BY {frames.history.number}) END"
            )
            early = f"coalesce(max({last}) {rows} >= {frames.start}, false)"
    decided = relation.column(early)
    found = relation.column(
        f"CASE WHEN {decided} THEN {str(name == 'any').lower()} "
        f"WHEN {reason} IS NULL THEN {str(name != 'any').lower()} END"
    )
    return Cell(found, relation.column(f"CASE WHEN {found} IS NULL THEN {reason} END"), BOOL)


def _check_order(facts: Facts, relation: Relation, history: HistoryColumns, unit: str) -> None:
    """The frames of a window function need the unit to grow along the instances."""
    over = f"OVER (PARTITION BY {history.key} ORDER BY {history.number})"
    back = f"SELECT {unit} < lag({unit}) {over} AS back FROM {relation.query()}"
    if facts.ask(f"SELECT 1 FROM ({back}) WHERE back LIMIT 1"):
        raise Unsupported(f"{unit[2:]}s do not grow along the trace")


def members(scope: QueryScope, name: str, cell: Cell) -> Cell:
    """A fold of the values on the members of the group, in order."""
    return folds.of_many(scope.relation, name, _of_members(scope.relation, cell, _group(scope)))


def _of_members(relation: Relation, cell: Cell, group: GroupColumns) -> Cell:
    """The values on the members, in the order of ranks.

    The first member without the instance has its place among them: not recorded. Others after it
    would give no other reason.
    """
    over = (
        f"OVER (PARTITION BY {group.key} ORDER BY rank "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    )
    many, first = _gathered(relation, cell, over), group.first_other
    before = relation.column(f"count(*) FILTER (rank < {first}) {over}")
    lacking = f"[{{'v': NULL::{sql_type(cell.shape)}, 'm': {NOT_RECORDED}::TINYINT}}]"
    with_it = f"list_concat({many.value}[1:{before}], {lacking}, {many.value}[{before} + 1:])"
    value = f"CASE WHEN {first} IS NULL THEN {many.value} ELSE {with_it} END"
    return Cell(relation.column(value), NO_REASON, many.shape)


def transposed(scope: QueryScope, cell: Cell) -> Cell:
    """Element i is x[k] of the i-th member, k this rank's place in the group."""
    group, relation = _group(scope), scope.relation
    if not isinstance(cell.shape, ListShape):
        why = f"coalesce({cell.why}, {NOT_RECORDED}::TINYINT)"
        return _of_members(relation, Cell("NULL::BOOLEAN", why, NOTHING), group)
    many = _of_members(relation, cell, group)
    place = relation.column(f"list_position({group.ranks}, rank)")
    item = cell.shape.item
    moved = (
        f"list_transform({many.value}, lambda it: CASE WHEN it.m IS NOT NULL THEN "
        f"{{'v': NULL::{sql_type(item)}, 'm': it.m}} WHEN len(it.v) < {place} THEN "
        f"{{'v': NULL::{sql_type(item)}, 'm': {ABSENT}::TINYINT}} ELSE it.v[{place}] END)"
    )
    return Cell(relation.column(moved), NO_REASON, ListShape(item))


def _gathered(relation: Relation, cell: Cell, over: str) -> Cell:
    kind = sql_type(cell.shape)
    value = f"list({{'v': {cell.value}::{kind}, 'm': {cell.why}}}) {over}"
    return Cell(relation.column(value), NO_REASON, ListShape(cell.shape))


def _history(scope: QueryScope) -> HistoryColumns:
    if scope.history is None:
        raise Unsupported("a look at other instances, where instances are made")
    return scope.history


def _group(scope: QueryScope) -> GroupColumns:
    if scope.group is None:
        raise Unsupported("a fold over a group, without one")
    return scope.group

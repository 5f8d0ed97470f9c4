"""Looks at other instances: earlier ones of the same subjects, and the same one on other ranks.

Both are window functions over the instances' columns.
"""

from __future__ import annotations

from tspec.check.columnar.facts import Facts
from tspec.check.columnar.relation import Relation
from tspec.check.columnar.scope import Group, History, Scope
from tspec.check.columnar.shapes import (
    ABSENT,
    NO_HISTORY,
    NOT_RECORDED,
    NOTHING,
    Cell,
    Many,
    Unsupported,
    sql_type,
)
from tspec.resolve import rules
from tspec.resolve.rules import Duration, Expr
from tspec.resolve.types import CallOf, Entity


def previous(scope: Scope, cell: Cell) -> Cell:
    """The value at the instance before."""
    history = _history(scope)
    over = f"OVER (PARTITION BY {history.key} ORDER BY {history.number})"
    return scope.relation.cell(
        f"lag({cell.value}) {over}",
        f"CASE WHEN {history.number} = 1 THEN {NO_HISTORY}::TINYINT ELSE lag({cell.why}) {over} END",
        cell.shape,
    )


def first(scope: Scope, cell: Cell, expr: Expr) -> Cell:
    """The value at the first instance; if a call is read, at the first one on this rank."""
    from tspec.check.columnar.expressions import inside

    history = _history(scope)
    over = f"OVER (PARTITION BY {history.key} ORDER BY {history.number})"
    if any(isinstance(e, rules.Variable) and isinstance(e.type, CallOf) for e in inside(expr)):
        over = f"OVER (PARTITION BY rank ORDER BY {history.rank_first})"
    return scope.relation.cell(
        f"first_value({cell.value}) {over}", f"first_value({cell.why}) {over}", cell.shape
    )


def over(scope: Scope, cell: Cell, duration: Duration) -> tuple[Cell, str]:
    """The values at this and the earlier instances within a duration; SQL: there are so many."""
    history, relation = _history(scope), scope.relation
    unit = f"u_{duration.unit}"
    parts = f"PARTITION BY {history.key} ORDER BY"
    if duration.unit != "step":
        _check_order(scope.facts, relation, history, unit)
    start = relation.column(
        f"min({history.number}) OVER ({parts} {unit} "
        f"RANGE BETWEEN {duration.count - 1} PRECEDING AND CURRENT ROW)"
    )
    many = _gathered(
        relation, cell,
        f"OVER ({parts} {history.number} ROWS BETWEEN ({history.number} - {start}) PRECEDING AND CURRENT ROW)",
    )  # fmt: skip
    stride = 1
    if history.every is not None and history.every.unit == duration.unit:
        stride = history.every.count
    since = relation.column(f"first_value({unit}) OVER ({parts} {history.number})")
    return many, relation.column(f"({since} <= {unit} - {duration.count} + {stride})")


def _check_order(facts: Facts, relation: Relation, history: History, unit: str) -> None:
    """The frames of a window function need the unit to grow along the instances."""
    over = f"OVER (PARTITION BY {history.key} ORDER BY {history.number})"
    back = f"SELECT {unit} < lag({unit}) {over} AS back FROM {relation.query()}"
    if facts.ask(f"SELECT 1 FROM ({back}) WHERE back LIMIT 1"):
        raise Unsupported(f"{unit[2:]}s do not grow along the trace")


def members(scope: Scope, cell: Cell) -> tuple[Cell, str]:
    """The values on the members of the group, in order; SQL: all members have the instance."""
    group = _group(scope)
    return _gathered(scope.relation, cell, _over_members(group)), f"({group.others} = 0)"


def _over_members(group: Group) -> str:
    return (
        f"OVER (PARTITION BY {group.key} ORDER BY rank "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    )


def transposed(scope: Scope, cell: Cell) -> Cell:
    """Element i is x[k] of the i-th member, k this rank's place in the group."""
    group, relation = _group(scope), scope.relation
    if not isinstance(cell.shape, Many):
        why = f"coalesce({cell.why}, {NOT_RECORDED}::TINYINT)"
        return _gathered(relation, Cell("NULL::BOOLEAN", why, NOTHING), _over_members(group))
    many, _ = members(scope, cell)
    place = relation.column(f"list_position({group.ranks}, rank)")
    item = cell.shape.item
    moved = (
        f"list_transform({many.value}, lambda it: CASE WHEN it.m IS NOT NULL THEN "
        f"{{'v': NULL::{sql_type(item)}, 'm': it.m}} WHEN len(it.v) < {place} THEN "
        f"{{'v': NULL::{sql_type(item)}, 'm': {ABSENT}::TINYINT}} ELSE it.v[{place}] END)"
    )
    lacking = f"[{{'v': NULL::{sql_type(item)}, 'm': {NOT_RECORDED}::TINYINT}}]"
    value = f"CASE WHEN {group.others} > 0 THEN list_concat({moved}, {lacking}) ELSE {moved} END"
    return Cell(relation.column(value), "NULL::TINYINT", Many(item))


def _gathered(relation: Relation, cell: Cell, over: str) -> Cell:
    kind = sql_type(cell.shape)
    value = f"list({{'v': {cell.value}::{kind}, 'm': {cell.why}}}) {over}"
    return Cell(relation.column(value), "NULL::TINYINT", Many(cell.shape))


def _history(scope: Scope) -> History:
    if scope.history is None:
        raise Unsupported("a look at other instances, where instances are made")
    return scope.history


def _group(scope: Scope) -> Group:
    if scope.group is None:
        raise Unsupported("a fold over a group, without one")
    return scope.group


def reads_entities_only(expr: Expr) -> bool:
    """It has an entity variable, and reads nothing but fields of entities and constants."""
    from tspec.check.columnar.expressions import inside

    found = list(inside(expr))
    variables = [each for each in found if isinstance(each, rules.Variable)]
    return (
        bool(variables)
        and all(isinstance(each.type, Entity) for each in variables)
        and not any(isinstance(each, _MOVING) for each in found)
        and not any(isinstance(e, rules.Fold) and e.scope != "list" for e in found)
    )


_MOVING = (
    rules.Ambient, rules.WindowCall, rules.LastCall, rules.Subjects, rules.Calls, rules.Old,
    rules.Previous, rules.First, rules.Transpose, rules.Change,
)  # fmt: skip

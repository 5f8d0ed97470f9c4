"""The ranks of an instance: the group of its `across` clause, as columns.

The counterpart of `tspec.check.interpret.groups`.
"""

from __future__ import annotations

from tspec.check.columnar import state
from tspec.check.columnar.expressions import read
from tspec.check.columnar.scope import Frame, QueryScope
from tspec.check.columnar.shapes import (
    INT,
    NO_REASON,
    STRING,
    Cell,
    ListShape,
    SingleShape,
    Unsupported,
)
from tspec.check.columnar.sql import text
from tspec.resolve.program.rules import Axis, Rule

LAST = Frame("l")
NONE = "[]::BIGINT[]"


def of_rows(rule: Rule, scope: QueryScope) -> tuple[str, str]:
    """Columns: the ranks of each row's group in order (or the rank alone), and whether the row has
    no group.
    """
    relation = scope.relation
    if not rule.across:
        return relation.column("[rank]"), "false"
    parts = [_reached(scope, clause) for clause in rule.across]
    if len(parts) == 1:
        reached = relation.column(
            f"list_sort(list_distinct(list_append({parts[0]}, CASE WHEN len({parts[0]}) > 0 THEN rank END)))"
        )
    else:
        joined = relation.column(f"list_sort(list_distinct({_concatenated(parts)}))")
        reached = _connected(rule, scope, joined)
    no_group = relation.column(f"coalesce(len({reached}), 0) < 2")
    return relation.column(f"CASE WHEN {no_group} THEN [rank] ELSE {reached} END"), no_group


def _concatenated(parts: list[str]) -> str:
    sql = parts[0]
    for part in parts[1:]:
        sql = f"list_concat({sql}, {part})"
    return sql


def _reached(scope: QueryScope, clause: object) -> str:
    """Column: the ranks that one clause reaches from each row."""
    if isinstance(clause, Axis):
        if clause.name == "world":
            return _world(scope)
        return _on_axis(scope, f"hash({text('group ' + clause.name)})")
    value = read(scope, clause.value, LAST)  # type: ignore[attr-defined]
    if isinstance(value.shape, ListShape):
        return _ranks(scope, value)
    if value.shape != STRING:
        return NONE
    named = _on_axis(scope, f"hash('group ' || {value.value})")
    return scope.relation.column(
        f"CASE WHEN {value.value} = 'world' THEN {_world(scope)} WHEN {value.value} IS NULL THEN {NONE} "
        f"ELSE {named} END"
    )


def _world(scope: QueryScope) -> str:
    return f"range({scope.facts.world}::BIGINT)"


def _on_axis(scope: QueryScope, axis: str) -> str:
    base = Cell(scope.relation.column(axis), NO_REASON, SingleShape("subject", "group"))
    return _ranks(scope, state.of_subject(scope, base, "ranks", LAST, None))


def _ranks(scope: QueryScope, cell: Cell) -> str:
    """Column: the ints of a list; none where it is missing."""
    if not isinstance(cell.shape, ListShape) or cell.shape.item != INT:
        return NONE
    known = f"list_transform(list_filter({cell.value}, lambda it: it.m IS NULL), lambda it: it.v)"
    return scope.relation.column(f"coalesce({known}, {NONE})")


def _connected(rule: Rule, scope: QueryScope, reached: str) -> str:
    """Column: all ranks reached from rank to rank over any of the axes (the others' last groups)."""
    if not all(isinstance(clause, Axis) for clause in rule.across):
        raise Unsupported("a group over several axes, one of them a field")
    facts, relation = scope.facts, scope.relation
    neighbours = {
        rank: _last_groups(scope, rank, [c.name for c in rule.across if isinstance(c, Axis)])
        for (rank,) in facts.ask("SELECT rank FROM ends")
    }
    rows = facts.ask(f"SELECT DISTINCT rank, {reached} FROM {relation.query()}")
    cases = []
    for rank, first in rows:
        found = {rank}
        waiting = list(first or ())
        while waiting:
            other = waiting.pop()
            if other not in found:
                found.add(other)
                waiting += neighbours.get(other, ())
        if not first:
            found = set()
        whole = "[" + ", ".join(map(str, sorted(found))) + "]::BIGINT[]"
        start = "[" + ", ".join(map(str, first or ())) + "]::BIGINT[]"
        cases.append(f"WHEN rank = {rank} AND {reached} = {start} THEN {whole}")
    return relation.column(f"CASE {' '.join(cases)} END" if cases else NONE)


def _last_groups(scope: QueryScope, rank: int, axes: list[str]) -> list[int]:
    """The ranks that a rank's last groups on some axes hold."""
    from tspec.check.columnar import reads

    found: list[int] = []
    for axis in axes:
        if axis == "world":
            found += range(scope.facts.world)
            continue
        source = reads.of_subjects(scope.facts, "group", "ranks", None)
        if not isinstance(source.shape, ListShape) or source.shape.item != INT:
            continue
        rows = scope.facts.ask(
            f"SELECT list_transform(v, lambda it: it.v) FROM {source.table} WHERE rank = {rank} "
            f"AND sid = hash({text('group ' + axis)}) ORDER BY g DESC LIMIT 1"
        )
        found += [each for row in rows for each in (row[0] or ()) if each is not None]
    return found

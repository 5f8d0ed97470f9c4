"""All instances of a rule as a relation: windows, with every choice of subjects, keys and groups.

The counterpart of `tspec.check.interpret.instances`.
"""

from __future__ import annotations

from dataclasses import replace

from tspec.builtin.kinds import PASSING
from tspec.check.columnar import groups, members, operators
from tspec.check.columnar.calls import of_window
from tspec.check.columnar.collections import field_of, holds
from tspec.check.columnar.expressions import read
from tspec.check.columnar.facts import RANK, Facts
from tspec.check.columnar.reads import KNOWN
from tspec.check.columnar.relation import Relation
from tspec.check.columnar.scope import Element, Frame, HistoryColumns, Instances, QueryScope
from tspec.check.columnar.shapes import (
    NO_REASON,
    NOTHING,
    TENSOR,
    Cell,
    ListShape,
    NoInstances,
    Shape,
    SingleShape,
    Unsupported,
)
from tspec.check.columnar.sql import text
from tspec.check.columnar.windows import RuleWindows, windows
from tspec.plan.events import is_windows_call
from tspec.resolve.program import rules
from tspec.resolve.program.queries import variables
from tspec.resolve.program.rules import For, Rule
from tspec.resolve.program.types import holds_tensors

LAST = Frame("l")
"""Subjects are those that exist when the window closes. If it is cut off, they are those at the
last record.
"""


def instances(rule: Rule, facts: Facts) -> Instances:
    """The instances of a rule. Raises Unsupported if a query cannot tell them, NoInstances for none."""
    empty = Relation(facts, "(SELECT 1 AS i)", "i")
    found = windows(QueryScope(facts, empty, rule.window, {}))
    if facts.is_empty(found.table):
        raise NoInstances
    if ("outer", rule.window) not in facts.cache:
        windows_alone = Relation(facts, found.table, "w")
        facts.cache["outer", rule.window] = QueryScope(facts, windows_alone, rule.window, {})
    outer = facts.cache["outer", rule.window]
    scope = QueryScope(facts, Relation(facts, found.table, "w"), rule.window, {})
    pending = dict(found.filters)
    made = Instances(replace(scope, outer=outer), found.table)
    if rule.window.kind == "calls" and rule.across:
        made = _grouped_calls(rule, made, found)
    made = _filtered(rule, made, pending)
    for clause in rule.subjects:
        made = _filtered(rule, _chosen(rule, made, clause), pending)
    if pending:
        raise Unsupported("a window's filter names what is no subject")
    return _keyed(rule, made, bool(found.earlier))


def _filtered(rule: Rule, made: Instances, pending: dict[int, Shape]) -> Instances:
    """Keep the rows that pass the window's filters, each filter as soon as its variables are bound."""
    pattern = rule.window.event
    for number in list(pending):
        assert pattern is not None
        each = pattern.filters[number]
        names = {variable.name for variable in variables(each.value)}
        if not names <= set(made.scope.variables):
            continue
        shape = pending.pop(number)
        value = read(made.scope, each.value, LAST)
        if NOTHING in (shape, value.shape):
            made.scope.relation.keep("false")
            continue
        test = operators.equal(f"f{number}", shape, value.value, value.shape)
        made.scope.relation.keep(f"coalesce({test}, false)")
    return made


# --- subjects -----------------------------------------------------------------------------------


def _chosen(rule: Rule, made: Instances, clause: For) -> Instances:
    """With another variable: a row for each element of its collection."""
    collection = clause.collection
    if is_windows_call(clause, rule):
        cell = Cell("c", NO_REASON, of_window(rule.window))
        return _bound(made, clause.variable, cell, "at1", "call")
    if isinstance(collection, rules.Subjects):
        return _subjects(made, clause, collection)
    return _elements(made, clause)


def _bound(
    made: Instances, variable: str, cell: Cell | Element, label: str, kind: str
) -> Instances:
    scope = replace(made.scope, variables={**made.scope.variables, variable: cell}, memo={})
    return replace(made, scope=scope, labels=(*made.labels, label), kinds=(*made.kinds, kind))


def _grown(made: Instances, query: str, *added: str) -> Instances:
    """The rows of a query over the relation so far: the windows' columns, the chosen subjects, and
    more.
    """
    facts = made.scope.facts
    held = (*made.held, *added)
    table = facts.table(
        f"SELECT {', '.join(['row_number() OVER () AS i', 'w', *held])} FROM ({query})"
    )
    source = f"(SELECT b.*, w.* EXCLUDE (w) FROM {table} b JOIN {made.windows} w ON w.w = b.w)"
    scope = replace(made.scope, relation=Relation(facts, source, "i"), memo={})
    return replace(made, scope=scope, held=held)


def _subjects(made: Instances, clause: For, collection: rules.Subjects) -> Instances:
    """All subjects of a kind that exist then."""
    facts, relation = made.scope.facts, made.scope.relation
    number = len(made.labels)
    kind = text(collection.kind)
    table = relation.query()
    if collection.kind in PASSING:
        lives = facts.table(f"SELECT sid, first FROM firsts WHERE kind = {kind}")
        query = f"""SELECT r.*, s.sid AS v{number}, row_number() OVER (
                      PARTITION BY r.{relation.key} ORDER BY s.first) - 1 AS k{number}
                    FROM {table} r JOIN {lives} s ON s.first >= r.sample_lo
                      AND s.first < r.sample_hi AND s.first <= r.l_at"""
    else:
        lives = facts.table(
            f"""SELECT l.sid, l.born, coalesce(l.died, (l.rank + 1) * {RANK}) AS died, f.first
                FROM lives l JOIN firsts f ON f.rank = l.rank AND f.sid = l.sid
                WHERE l.kind = {kind}"""
        )
        query = f"""SELECT r.*, s.sid AS v{number}, s.first AS k{number}
                    FROM {table} r JOIN {lives} s ON s.born <= r.l_at AND r.l_at < s.died
                      AND s.born >= r.rank * {RANK}"""
    made = _grown(made, query, f"v{number}", f"k{number}")
    cell = Cell(f"v{number}", NO_REASON, SingleShape("subject", collection.kind))
    label, labelled = (
        (f"k{number}", "place") if collection.kind in PASSING else (f"v{number}", "subject")
    )
    scope = made.scope
    for each in collection.filters:
        value = read(scope, each.value, LAST)
        found = field_of(scope, cell, each.field, LAST, None)
        scope.relation.keep(f"coalesce({holds(scope, each.field, found, value, LAST)}, false)")
    return _bound(made, clause.variable, cell, label, labelled)


def _elements(made: Instances, clause: For) -> Instances:
    """The elements of any other collection; of several of one name, the first."""
    scope, number = made.scope, len(made.labels)
    tensors = holds_tensors(clause.collection.type)
    cell = read(scope, clause.collection, LAST, KNOWN if tensors else None)
    if not isinstance(cell.shape, ListShape):
        query = f"SELECT *, NULL::BIGINT AS k{number} FROM {scope.relation.query()} WHERE false"
        made = _grown(made, query, f"k{number}")
        return _bound(
            made,
            clause.variable,
            Cell("NULL::BOOLEAN", "2::TINYINT", NOTHING),
            f"k{number}",
            "item",
        )
    item = cell.shape.item
    held = scope.relation.computed(cell.value)
    label, kind = f"k{number} - 1", "item"
    once = ""
    if isinstance(item, SingleShape) and item.name == "call":
        kind = "nth call"
    if isinstance(item, SingleShape) and item.name == "subject":
        if item.kind in PASSING or not item.kind:
            raise Unsupported("a list of batches or messages as subjects")
        label, kind = f"v{number}", "subject"
        once = "QUALIFY row_number() OVER (PARTITION BY r_key, el.v ORDER BY n) = 1"
    query = f"""SELECT * EXCLUDE (el, n, r_key), el.v AS v{number}, n AS k{number}
                FROM (SELECT *, {scope.relation.key} AS r_key, unnest({held}) AS el,
                        generate_subscripts({held}, 1) AS n FROM {scope.relation.query()})
                WHERE el.m IS NULL {once}"""
    made = _grown(made, query, f"v{number}", f"k{number}")
    if tensors or item == TENSOR:
        return _bound(made, clause.variable, Element(clause.collection, f"k{number}"), label, kind)
    return _bound(made, clause.variable, Cell(f"v{number}", NO_REASON, item), label, kind)


# --- keys ---------------------------------------------------------------------------------------


def _keyed(rule: Rule, made: Instances, late: bool) -> Instances:
    """With the columns of groups, keys and histories."""
    if made.scope.relation.key == "w":
        made = _grown(made, f"SELECT * FROM {made.scope.relation.query()}")
    scope, relation = made.scope, made.scope.relation
    ranks, no_group, place = made.ranks, made.no_group, made.place
    if not ranks:
        ranks, no_group = groups.of_rows(rule, scope)
    clauses = list(zip(made.labels, made.kinds, strict=True))
    labels = tuple(place if kind == "call" else label for label, kind in clauses)
    # The list is hashed as text: the engine's hash of a list ignores leading zeros.
    group = f"({ranks})::VARCHAR" if rule.across else "rank"
    key = relation.column(f"hash({', '.join([group, *labels])})")
    if rule.window.once:
        first = relation.column(f"min({{'a': at0, 'b': {place}}}) OVER (PARTITION BY {key})")
        relation.keep(f"at0 = {first}.a AND {place} = {first}.b")
    history = relation.column(f"hash(rank, {key})")
    if late:
        # A call that passes a filter only at its end may hold another window of its own place.
        relation.keep(
            f"row_number() OVER (PARTITION BY {history}, at0, {place} ORDER BY w DESC) = 1",
            "QUALIFY",
        )
    order = relation.column(f"row_number() OVER (PARTITION BY {history} ORDER BY at0, {place})")
    chosen = [f"k{n}" for n, (_, kind) in enumerate(clauses) if kind != "call"]
    rank_first = ", ".join(["at0", place, "w", *chosen])
    scope = replace(scope, history=HistoryColumns(history, order, rank_first, rule.window.every))
    made = replace(made, scope=scope, labels=labels, place=place, ranks=ranks, no_group=no_group)
    # If no rank has a group, all instances are idle and no filter applies.
    grouped = f"SELECT 1 FROM {relation.query()} WHERE NOT {no_group} LIMIT 1"
    if not rule.across or not made.scope.facts.ask(grouped):
        return made
    return members.with_others(rule, made)


def _grouped_calls(rule: Rule, made: Instances, found: RuleWindows) -> Instances:
    """Number the windows that are calls among the calls of the step with the same group.

    The number does not depend on the subjects.
    """
    scope, relation = made.scope, made.scope.relation
    calls = Cell("c", NO_REASON, of_window(rule.window))
    names = {each.variable for each in rule.subjects if is_windows_call(each, rule)}
    named = (group.value for group in rule.across if isinstance(group, rules.GroupField))
    if {variable.name for field in named for variable in variables(field)} - names:
        raise Unsupported("calls have their place in a group that a subject names")
    bound = replace(scope, variables=dict.fromkeys(names, calls))
    ranks, no_group = groups.of_rows(rule, bound)
    fields = [f"f{number}" for number, _ in found.filters]
    if not found.earlier:
        same = ", ".join(["rank", "at0", f"({ranks})::VARCHAR", *fields])
        place = relation.column(f"row_number() OVER (PARTITION BY {same} ORDER BY c) - 1")
    else:
        group = relation.column(f"hash({', '.join([f'({ranks})::VARCHAR', *fields])})")
        table = relation.table("c", group)
        (place,) = relation.joined(
            f"""LEFT JOIN (SELECT t.w, count(*) AS place FROM {table} t
                  JOIN {found.earlier} p ON p.c = t.c
                  JOIN {table} o ON o.c = p.other AND o.{group} = t.{group} GROUP BY t.w) q
                ON q.w = r.w""",
            ("coalesce(q.place, 0)",),
        )
    # Subjects are chosen for windows, so their groups go with the windows.
    found_there = scope.facts.table(f"SELECT * FROM {relation.query()}")
    bare = replace(scope, relation=Relation(scope.facts, found_there, "w"), memo={})
    return replace(
        made, scope=bare, windows=found_there, ranks=ranks, no_group=no_group, place=place
    )

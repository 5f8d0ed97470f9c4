"""The calls that an event pattern matches, in queries: filters, outermost calls, calls in a window.

The counterpart of `tspec.check.interpret.calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tspec.check.columnar import reads
from tspec.check.columnar.facts import Facts
from tspec.check.columnar.operators import equal, instance_of
from tspec.check.columnar.reads import ReadTable
from tspec.check.columnar.relation import is_column, own
from tspec.check.columnar.scope import Frame, QueryScope
from tspec.check.columnar.shapes import (
    FLOAT,
    NO_REASON,
    NOT_RECORDED,
    NOTHING,
    STRING,
    Cell,
    ListShape,
    Shape,
    SingleShape,
    Unsupported,
    call_of,
    sql_type,
)
from tspec.check.columnar.sql import texts
from tspec.resolve.program.rules import EventPattern, Expr, Window

Filters = tuple[tuple[str, Cell], ...]
Read = Callable[[QueryScope, Expr, Frame], Cell]


def filters(scope: QueryScope, pattern: EventPattern, frame: Frame, read: Read) -> Filters:
    """The values against which a pattern's filters compare its fields."""
    return tuple((each.field, read(scope, each.value, frame)) for each in pattern.filters)


def of_window(window: Window) -> SingleShape:
    """The shape of the window's own call."""
    return call_of(window.event.events if window.event is not None else ())


# --- calls in a window --------------------------------------------------------------------------


def in_window(
    scope: QueryScope, wanted: Sequence[tuple[EventPattern, Filters]], frame: Frame
) -> Cell:
    """The outermost of the matching calls that begin in the window, as a list."""
    until = "l_hi" if frame.when == "l" else "call_hi"
    pairs = pairs_in_window(scope, wanted, until)
    shape = ListShape(call_of(event for pattern, _ in wanted for event in pattern.events))
    listed = scope.facts.table(
        f"SELECT i, list({{'v': c, 'm': NULL::TINYINT}} ORDER BY c) AS l FROM {pairs} GROUP BY i"
    )
    (value,) = scope.relation.joined(
        f"LEFT JOIN {listed} s ON s.i = r.{scope.relation.key}",
        (f"coalesce(s.l, []::{sql_type(shape)})",),
    )
    if frame.when != "e":
        return Cell(value, NO_REASON, shape)
    return scope.relation.cell(
        f"CASE WHEN e_at IS NOT NULL THEN {value} END",
        f"CASE WHEN e_at IS NULL THEN {NOT_RECORDED}::TINYINT END",
        shape,
    )


def pairs_in_window(
    scope: QueryScope, wanted: Sequence[tuple[EventPattern, Filters]], until: str = "call_hi"
) -> str:
    """A table `i, c`: instances with the outermost matching calls that begin in their windows."""
    compared = [scope.relation.column(value.value) for _, each in wanted for _, value in each]
    table = scope.relation.reading(*compared)
    parts = [_matching(scope, table, pattern, values, until) for pattern, values in wanted]
    found = scope.facts.table(
        " UNION ".join(f"({part})" for part in parts) if len(parts) > 1 else parts[0]
    )
    return outermost(scope.facts, found, (e for pattern, _ in wanted for e in pattern.events))


def _matching(
    scope: QueryScope, table: str, pattern: EventPattern, values: Filters, until: str
) -> str:
    """Query `i, c` of the matching calls. Fields are read at the call's end, if it ends in the window."""
    facts, key = scope.facts, scope.relation.key
    columns, tests, classes = [], [], []
    for number, (field, value) in enumerate(values):
        source = reads.of_calls(facts, pattern.events, field, None)
        sides = both_sides(facts, source)
        columns.append((number, sides))
        known = (
            f"k.b{number}"
            if not _has_end(facts, pattern, field)
            else f"CASE WHEN k.h{number} AND k.e <= r.l_at THEN k.e{number} ELSE k.b{number} END"
        )
        mine = own(value.value)
        if (
            field == "class"
            and isinstance(source.shape, SingleShape)
            and source.shape.name == "subject"
        ):
            classes.append((source.shape.kind, known, mine, value.shape))
        elif field == "class":
            tests.append(
                instance_of(known, Cell(mine, "", value.shape))
                if source.shape == STRING
                else "false"
            )
        elif NOTHING in (source.shape, value.shape):
            tests.append("false")
        else:
            tests.append(equal(known, source.shape, mine, value.shape))
    calls = facts.table(_with_fields(pattern.events, columns))
    where = " AND ".join(["k.c >= r.call_lo", f"k.c < r.{until}", *tests])
    query = f"SELECT r.{key} AS i, k.c FROM {table} r JOIN {calls} k ON {where}"
    if len(classes) > 1:
        raise Unsupported("two filters on classes")
    for kind, known, mine, wanted in classes:
        pairs = (
            f"SELECT r.{key} AS i, k.c, r.rank, r.l_at, {known} AS f, {mine} AS wanted "
            f"FROM {table} r JOIN {calls} k ON {where}"
        )
        query = _of_class(facts, facts.table(pairs), kind, wanted)
    return query


def _of_class(facts: Facts, pairs: str, kind: str, wanted: Shape) -> str:
    """The pairs whose field `f` is a subject of the wanted class, as of the window's end."""
    source = reads.of_subjects(facts, kind, "class", None)
    if source.shape != STRING:
        return f"SELECT i, c FROM {pairs} WHERE false"
    test = instance_of("s.v", Cell("p.wanted", "", wanted))
    return (
        f"SELECT p.i, p.c FROM {pairs} p ASOF JOIN {source.table} s "
        f"ON s.rank = p.rank AND s.sid = p.f AND p.l_at >= s.g WHERE coalesce({test}, false)"
    )


def both_sides(facts: Facts, source: ReadTable) -> str:
    """A table `c, b, e, h`: a field's value at the begin and at the end of calls, and whether the
    end has one.
    """
    if not source.ends:
        return facts.table(
            f"SELECT c, v AS b, NULL::{sql_type(source.shape)} AS e, false AS h FROM {source.table}"
        )
    return facts.table(
        "SELECT c, max(v) FILTER (side = 0) AS b, max(v) FILTER (side = 1) AS e, "
        f"bool_or(side = 1) AS h FROM {source.table} GROUP BY c"
    )


def _has_end(facts: Facts, pattern: EventPattern, field: str) -> bool:
    return any(("end", event, field) in facts.types for event in pattern.events)


def _with_fields(events: Iterable[str], columns: Sequence[tuple[int, str]]) -> str:
    """Query of the calls of some events with the sides of fields."""
    fields = "".join(
        f", s{n}.b AS b{n}, s{n}.e AS e{n}, coalesce(s{n}.h, false) AS h{n}" for n, _ in columns
    )
    joins = " ".join(f"LEFT JOIN {sides} s{n} ON s{n}.c = k.c" for n, sides in columns)
    named = texts(sorted(set(events)))
    return f"SELECT k.c, k.rank, k.e, k.e_hi{fields} FROM calls k {joins} WHERE k.event IN {named}"


# --- the outermost ------------------------------------------------------------------------------


def outermost(facts: Facts, pairs: str, events: Iterable[str]) -> str:
    """The outermost calls of a table `i, c`: those that no other call of the same `i` encloses."""
    nested = nesting(facts, events)
    if not facts.ask(f"SELECT 1 FROM {nested} LIMIT 1"):
        return pairs
    return facts.table(
        f"SELECT p.i, p.c FROM {pairs} p ANTI JOIN "
        f"(SELECT q.i, n.c FROM {pairs} q JOIN {nested} n ON n.outside = q.c) x "
        "ON x.i = p.i AND x.c = p.c"
    )


def nesting(facts: Facts, events: Iterable[str]) -> str:
    """A table `c, outside` of calls with the calls that enclose them, all of some events."""
    named = sorted(set(events))
    return enclosing(facts, named, named)


def enclosing(facts: Facts, inner: Sequence[str], outer: Sequence[str]) -> str:
    """A table `c, outside`: calls of some events with the calls of others that enclose them."""
    if not _may_lie_in(facts, inner, outer):
        return facts.table("SELECT c, c AS outside FROM calls WHERE false")
    return facts.table(
        f"""WITH RECURSIVE up(c, outside) AS (
              SELECT c, parent FROM calls WHERE event IN {texts(list(inner))} AND parent IS NOT NULL
              UNION ALL
              SELECT u.c, k.parent FROM up u JOIN calls k ON k.c = u.outside
              WHERE k.parent IS NOT NULL)
            SELECT u.c, u.outside FROM up u JOIN calls k ON k.c = u.outside
            WHERE k.event IN {texts(list(outer))}"""
    )


def _may_lie_in(facts: Facts, inner: Sequence[str], outer: Sequence[str]) -> bool:
    """True if the recorded parents of `inner` events lead, from call to enclosing call, to an
    `outer` event.
    """
    if "around" not in facts.cache:
        around: dict[str, set[str]] = {}
        for event, parent in facts.ask(
            "SELECT DISTINCT k.event, p.event FROM calls k JOIN calls p ON p.c = k.parent"
        ):
            around.setdefault(event, set()).add(parent)
        facts.cache["around"] = around
    around = facts.cache["around"]
    waiting = [parent for event in inner for parent in around.get(event, ())]
    reached: set[str] = set()
    while waiting:
        event = waiting.pop()
        if event not in reached:
            reached.add(event)
            waiting += around.get(event, ())
    return not reached.isdisjoint(outer)


# --- the last call ------------------------------------------------------------------------------


def last(scope: QueryScope, pattern: EventPattern, values: Filters, frame: Frame) -> Cell:
    """The last matching call that ended in the window."""
    facts = scope.facts
    columns, constant, joined = [], ["k.e IS NOT NULL"], []
    for number, (field, value) in enumerate(values):
        source = reads.of_calls(facts, pattern.events, field, None)
        if field == "class" and source.shape != STRING:
            raise Unsupported("the last call of a class")
        columns.append((number, both_sides(facts, source)))
        known = f"CASE WHEN k.h{number} THEN k.e{number} ELSE k.b{number} END"
        if field == "class":
            test = instance_of(known, value)
        elif NOTHING in (source.shape, value.shape):
            test = "false"
        else:
            test = equal(known, source.shape, own(value.value), value.shape)
        if not is_column(value.value):
            constant.append(test)
        elif (
            FLOAT in (source.shape, value.shape)
            or isinstance(value.shape, ListShape)
            or field == "class"
        ):
            raise Unsupported("the last call is chosen by a computed number")
        else:
            joined.append(test)
    inner = _with_fields(pattern.events, columns)
    matching = facts.table(f"SELECT * FROM ({inner}) k WHERE {' AND '.join(constant)}")
    until = "l_hi" if frame.when == "l" else "call_hi"
    conditions = " AND ".join(["k.rank = r.rank", *joined, f"r.{until} > k.e"])
    call, found = scope.relation.joined(
        f"ASOF LEFT JOIN {matching} k ON {conditions}",
        ("CASE WHEN k.e >= r.call_lo THEN k.c END", "coalesce(k.e >= r.call_lo, false)"),
    )
    cut = " OR e_at IS NULL" if frame.when == "e" else ""
    return scope.relation.cell(
        f"CASE WHEN {found}{' AND e_at IS NOT NULL' if cut else ''} THEN {call} END",
        f"CASE WHEN NOT {found}{cut} THEN {NOT_RECORDED}::TINYINT END",
        call_of(pattern.events),
    )

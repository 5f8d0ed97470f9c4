"""Claims that are no expressions: `A before B`, `contains E`, `x only during A or B`.

The counterpart of `tspec.check.interpret.claims`. Each claim gives SQL for its verdict (`holds`,
`violated`, `idle` or `unknown`), for the reason if it is unknown, and for the call that violates
it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from tspec import reasons
from tspec.check.columnar import calls, reads
from tspec.check.columnar.calls import Filters
from tspec.check.columnar.expressions import read
from tspec.check.columnar.operators import equal, instance_of
from tspec.check.columnar.relation import Relation, own
from tspec.check.columnar.scope import CONTEXT, Frame, QueryScope
from tspec.check.columnar.shapes import (
    ABSENT,
    NOT_RECORDED,
    NOTHING,
    REASONS,
    STRING,
    Cell,
    SingleShape,
    Unsupported,
    events_of,
)
from tspec.check.columnar.sql import text
from tspec.resolve.program.rules import Contains, EventPattern, OnlyDuring, Ordered

CUT_OFF = text(reasons.CUT_OFF)
UNREAD = text(REASONS[NOT_RECORDED])
LAST = Frame("l")
NO_CALL = "NULL::BIGINT"


@dataclass(frozen=True, slots=True)
class ClaimColumns:
    """Columns with the verdict of each row, the reason if it is unknown, and the call that violates
    the claim; NULL if there is none.
    """

    verdict: str
    why: str = CUT_OFF
    broken_at: str = NO_CALL


def claim(scope: QueryScope, expect: Ordered | Contains | OnlyDuring) -> ClaimColumns:
    """The verdict of a claim on each row."""
    if isinstance(expect, Contains):
        return _contains(scope, expect)
    if isinstance(expect, Ordered):
        return _ordered(scope, expect)
    return _changed_only_in(scope, expect) if expect.change else _call_only_in(scope, expect)


def _values(scope: QueryScope, event: EventPattern, frame: Frame) -> Filters:
    return calls.filters(scope, event, frame, read)


def _contains(scope: QueryScope, expect: Contains) -> ClaimColumns:
    pairs = calls.pairs_in_window(scope, ((expect.event, _values(scope, expect.event, LAST)),))
    found = scope.facts.table(f"SELECT DISTINCT i FROM {pairs}")
    (there,) = scope.relation.joined(
        f"LEFT JOIN {found} s ON s.i = r.{scope.relation.key}", ("s.i IS NOT NULL",)
    )
    verdict = scope.relation.column(
        f"CASE WHEN {there} THEN 'holds' WHEN e_at IS NULL THEN 'unknown' ELSE 'violated' END"
    )
    return ClaimColumns(verdict)


def _ordered(scope: QueryScope, expect: Ordered) -> ClaimColumns:
    """Each B in the window has an A in it that has ended before B begins: the first B has."""
    seconds = _seconds(scope, expect)
    broken = " OR ".join(each.too_early for each in seconds) or "false"
    due = " OR ".join(f"{each.begun} IS NOT NULL" for each in seconds) or "false"
    verdict = scope.relation.column(
        f"CASE WHEN {broken} THEN 'violated' WHEN e_at IS NULL THEN 'unknown' "
        f"WHEN {due} THEN 'holds' ELSE 'idle' END"
    )
    cases = "".join(f" WHEN {each.too_early} THEN {each.call}" for each in seconds)
    broken_at = scope.relation.column(f"CASE{cases} END") if cases else NO_CALL
    return ClaimColumns(verdict, broken_at=broken_at)


@dataclass(frozen=True, slots=True)
class _FollowingCall:
    """Columns of the first call of an event that is to come after another: it, and when it began."""

    call: str
    begun: str
    too_early: str
    """SQL: no call of the other event had ended by then."""


def _seconds(scope: QueryScope, expect: Ordered) -> list[_FollowingCall]:
    events = expect.events if expect.edge == "before" else tuple(reversed(expect.events))
    key = scope.relation.key
    columns = []
    for event in events:
        pairs = calls.pairs_in_window(scope, ((event, _values(scope, event, LAST)),))
        table = scope.facts.table(
            f"""SELECT p.i, min(k.c) AS c, min(k.b_hi) AS begun, min(k.e_hi) AS ended
                FROM {pairs} p JOIN calls k ON k.c = p.c GROUP BY p.i"""
        )
        join = f"LEFT JOIN {table} s ON s.i = r.{key}"
        columns.append(scope.relation.joined(join, ("s.c", "s.begun", "s.ended")))
    return [
        _FollowingCall(
            call, begun, f"({begun} IS NOT NULL AND ({ended} IS NULL OR {ended} > {begun}))"
        )
        for (_, _, ended), (call, begun, _) in pairwise(columns)
    ]


# --- only during --------------------------------------------------------------------------------


def _call_only_in(scope: QueryScope, expect: OnlyDuring) -> ClaimColumns:
    """Some call of A or B encloses the call."""
    facts = scope.facts
    call = read(scope, expect.subject, Frame())
    if not (isinstance(call.shape, SingleShape) and call.shape.name == "call"):
        return ClaimColumns("'unknown'", UNREAD)
    subject = scope.relation.column(call.value)
    parts = []
    for event in expect.events:
        values = _values(scope, event, Frame())
        inside = calls.enclosing(facts, events_of(call.shape), sorted(set(event.events)))
        parts.append(_enclosed(scope, subject, event, values, inside))
    found = facts.table(f"SELECT DISTINCT i FROM ({' UNION ALL '.join(parts)})")
    (there,) = scope.relation.joined(
        f"LEFT JOIN {found} s ON s.i = r.{scope.relation.key}", ("s.i IS NOT NULL",)
    )
    verdict = scope.relation.column(
        f"CASE WHEN e_at IS NULL OR {subject} IS NULL THEN 'unknown' "
        f"WHEN {there} THEN 'holds' ELSE 'violated' END"
    )
    why = scope.relation.column(f"CASE WHEN e_at IS NULL THEN {CUT_OFF} ELSE {UNREAD} END")
    return ClaimColumns(verdict, why)


def _enclosed(
    scope: QueryScope, subject: str, event: EventPattern, values: Filters, inside: str
) -> str:
    """Query `i` of the instances whose call lies in a matching one, as known at the window's end."""
    facts = scope.facts
    for _, value in values:
        scope.relation.column(value.value)
    tests, joins = [], ""
    for number, (field, value) in enumerate(values):
        source = reads.of_calls(facts, event.events, field, None)
        sides = calls.both_sides(facts, source)
        joins += f" LEFT JOIN {sides} s{number} ON s{number}.c = n.outside"
        known = f"CASE WHEN s{number}.h AND k.e <= r.e_at THEN s{number}.e ELSE s{number}.b END"
        mine = own(value.value)
        if field == "class":
            if source.shape != STRING:
                raise Unsupported("calls of a class that enclose others")
            tests.append(instance_of(known, Cell(mine, "", value.shape)))
        elif NOTHING in (source.shape, value.shape):
            tests.append("false")
        else:
            tests.append(equal(known, source.shape, mine, value.shape))
    table = scope.relation.query()
    where = f"WHERE {' AND '.join(tests)}" if tests else ""
    return (
        f"SELECT r.{scope.relation.key} AS i FROM {table} r JOIN {inside} n ON n.c = r.{subject} "
        f"JOIN calls k ON k.c = n.outside{joins} {where}"
    )


def _changed_only_in(scope: QueryScope, expect: OnlyDuring) -> ClaimColumns:
    """The claim holds if no two successive readings differ without a matching call running between
    them.
    """
    facts, relation = scope.facts, scope.relation
    wanted = tuple((event, _values(scope, event, Frame())) for event in expect.events)
    pairs = calls.pairs_in_window(scope, wanted)
    table, key = relation.table("s_at", "e_at"), relation.key
    points = facts.table(
        f"""SELECT i, point, max(returned) AS returned, max(begins) AS begins FROM (
              SELECT {key} AS i, s_at AS point, NULL::BIGINT AS returned, NULL::BIGINT AS begins
              FROM {table} WHERE e_at IS NOT NULL
              UNION ALL SELECT {key}, e_at, NULL, NULL FROM {table} WHERE e_at IS NOT NULL
              UNION ALL
              SELECT r.{key}, k.b_hi, least(r.e_at, coalesce(k.e_hi, r.e_at)), k.c
              FROM {table} r JOIN {pairs} p ON p.i = r.{key} JOIN calls k ON k.c = p.c
              WHERE r.e_at IS NOT NULL
              UNION ALL
              SELECT r.{key}, least(r.e_at, coalesce(k.e_hi, r.e_at)), NULL, NULL
              FROM {table} r JOIN {pairs} p ON p.i = r.{key} JOIN calls k ON k.c = p.c
              WHERE r.e_at IS NOT NULL) GROUP BY i, point"""
    )
    moved = ", ".join(f"s_{name} AS e_{name}" for name in CONTEXT)
    without = ", ".join(
        ["e_at", *(f"e_{name}" for name in CONTEXT), *(["i"] if key == "i" else [])]
    )
    at_points = f"""(SELECT hash(p.i, p.point) AS n, p.returned, p.begins, p.i AS instance,
          r.* EXCLUDE ({without}), p.point AS e_at, {moved}
        FROM {points} p JOIN {relation.query()} r ON r.{key} = p.i)"""
    reading = replace(scope, relation=Relation(facts, at_points, "n"), outer=None, memo={})
    digest = read(reading, expect.subject, Frame(), "digest")
    found = facts.table(_differences(reading.relation, digest))
    outside, unknown, broken_at = relation.joined(
        f"LEFT JOIN {found} s ON s.i = r.{key}",
        ("coalesce(s.outside, false)", "s.unknown", "s.call"),
    )
    verdict = relation.column(
        f"CASE WHEN e_at IS NULL THEN 'unknown' WHEN {outside} THEN 'violated' "
        f"WHEN {unknown} IS NOT NULL THEN 'unknown' ELSE 'holds' END"
    )
    names = " ".join(f"WHEN {number} THEN '{name}'" for number, name in REASONS.items())
    why = relation.column(
        f"CASE WHEN e_at IS NULL THEN {CUT_OFF} ELSE CASE {unknown} {names} END END"
    )
    return ClaimColumns(verdict, why, broken_at)


def _differences(relation: Relation, digest: Cell) -> str:
    """Query `i, outside, unknown, call`: whether the digest differs outside of calls; or why it is not known;
    and the call at whose begin the first difference is seen.
    """  # fmt: skip
    order = "OVER (PARTITION BY instance ORDER BY e_at)"
    before = "OVER (PARTITION BY instance ORDER BY e_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    value = relation.column(f"lag({digest.value}) {order}")
    why = relation.column(f"lag({digest.why}) {order}")
    first = relation.column(f"row_number() {order} = 1")
    running = relation.column(f"coalesce(max(returned) {before} >= e_at, false)")
    odd = relation.column(
        f"CASE WHEN {why} <> {ABSENT} THEN {why} WHEN {digest.why} <> {ABSENT} THEN {digest.why} END"
    )
    # Absent at both: no change; at one: a change.
    changed = relation.column(
        f"CASE WHEN {odd} IS NOT NULL THEN NULL WHEN {why} IS NOT NULL OR {digest.why} IS NOT NULL "
        f"THEN {why} IS DISTINCT FROM {digest.why} ELSE {value} <> {digest.value} END"
    )
    return (
        f"SELECT instance AS i, bool_or({changed}) AS outside, arg_min({odd}, e_at) AS unknown, "
        f"first(begins ORDER BY e_at) FILTER (WHERE {changed}) AS call "
        f"FROM {relation.query()} WHERE NOT {first} AND NOT {running} GROUP BY instance"
    )

"""The occurrences of a rule's window on all ranks, as a table with the columns that `scope` names.

The counterpart of `tspec.check.interpret.windows`. `at0` and `at1` are the place in the job.
`u_step`, `u_epoch` and `u_microbatch` are the unit that look-backs count. `located` is the record
with the window's location: its call's begin, or the boundary that ends the span. For calls, `f0`,
`f1`, ... are the fields that the window's filters compare; `place` counts the calls with equal
values of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from tspec.check.columnar import calls as patterns
from tspec.check.columnar import reads
from tspec.check.columnar.facts import RANK, Facts
from tspec.check.columnar.operators import equal, instance_of
from tspec.check.columnar.scope import CONTEXT, Frame, QueryScope
from tspec.check.columnar.shapes import NOTHING, STRING, Cell, Shape, SingleShape, Unsupported
from tspec.check.columnar.sql import text, texts
from tspec.resolve.program.rules import Constant, EventPattern, Expr, ListDisplay, Window


@dataclass(frozen=True, slots=True)
class RuleWindows:
    """The windows of a rule.

    `filters`: the filters whose values depend on the subjects, each as its place in the pattern and the
    shape of column `f<place>`. `earlier`, if filters are known only at a call's end: a table `c, other`
    of each window and those before it in the step, as known when the window is over.
    """

    table: str
    filters: tuple[tuple[int, Shape], ...] = ()
    earlier: str = ""


def windows(scope: QueryScope) -> RuleWindows:
    """All occurrences of the scope's window; those that `every` skips are left out."""
    facts, window = scope.facts, scope.window
    if window.kind == "each":
        return RuleWindows(facts.table(_thinned(_spans(facts, window), window)))
    assert window.event is not None
    called = of_pattern(scope, window.event)
    query = f"SELECT * EXCLUDE (b_step, b_epoch, b_microbatch) FROM ({_thinned(_of_calls(facts, window, called.table), window)})"
    return RuleWindows(facts.table(query), called.filters, called.earlier)


def _context(moment: str, source: str, prefix: str = "") -> str:
    return ", ".join(f"{source}.{prefix}{name} AS {moment}_{name}" for name in CONTEXT)


def _steps(facts: Facts) -> str:
    return facts.table("SELECT rank, lo, hi FROM boundaries WHERE span = 'step'")


def _lasts(facts: Facts) -> str:
    """The last record of each rank, and its first place."""
    return facts.table(
        """SELECT r.rank, r.g AS last_g, coalesce(s.lo, r.g) AS last_lo, e.first AS first_g,
             r.step, r.epoch, r.microbatch, r.phase, e.finished, i.lo AS empty_from
           FROM ends e JOIN record r ON r.g = e.last
           LEFT JOIN shared s ON s.rank = r.rank AND s.seq = r.seq
           LEFT JOIN instant i ON i.g = e.empty_step"""
    )


def _thinned(query: str, window: Window) -> str:
    """The windows whose number in the unit is divisible."""
    if window.every is None:
        return query
    opened = "s" if window.kind == "each" else "b"
    number = f"{opened}_{window.every.unit}"
    return f"SELECT * FROM ({query}) WHERE {number} % {window.every.count} = 0"


def _counted(facts: Facts, query: str, order: str = "q.rank, q.s_at") -> str:
    """With the number of microbatches that had opened by then, and a number for each window."""
    opened = facts.table(
        """SELECT rank, hi, row_number() OVER (PARTITION BY rank ORDER BY g) AS n
           FROM boundaries WHERE span = 'microbatch'"""
    )
    return (
        f"SELECT row_number() OVER (ORDER BY {order}) AS w, q.*, coalesce(o.n, 0) AS u_microbatch "
        f"FROM ({query}) q ASOF LEFT JOIN {opened} o ON o.rank = q.rank AND q.s_at >= o.hi"
    )


# --- spans --------------------------------------------------------------------------------------


def _spans(facts: Facts, window: Window) -> str:
    if window.span == "run":
        opened = f"SELECT rank, first_g AS lo, first_g AS first_g, NULL::BIGINT AS next, 0 AS number FROM {_lasts(facts)}"
        opened = f"""SELECT l.rank, r.g AS lo, coalesce(s.hi, r.g) AS hi, 0 AS number, NULL::BIGINT AS next,
                     r.step, r.epoch, r.microbatch, r.phase
                     FROM {_lasts(facts)} l JOIN record r ON r.g = l.first_g
                     LEFT JOIN shared s ON s.rank = r.rank AND s.seq = r.seq"""
        at0, at1 = "0", "0"
    else:
        assert window.span is not None
        opened = f"""SELECT rank, lo, hi, number, lead(g) OVER (PARTITION BY rank ORDER BY g) AS next,
                     row_number() OVER (PARTITION BY rank ORDER BY g) AS nth,
                     step, epoch, microbatch, phase FROM boundaries WHERE span = {text(window.span)}"""
        at0, at1 = ("b.step", _PLACE) if window.span == "microbatch" else ("b.number", "0")
    skip = "WHERE b.number >= 1" if window.span == "step" else "WHERE true"
    if window.span != "run":  # the run ends in an empty step, and in what opened with it or in it
        skip += " AND (l.empty_from IS NULL OR b.lo < l.empty_from OR b.next IS NOT NULL)"
    u_step = "at0" if window.span in ("step", "microbatch") else "s_step"
    # A span closes in the context of the record before its end.
    query = f"""
      SELECT b.rank, NULL::BIGINT AS c, n.g AS located, b.lo AS call_lo, coalesce(n.lo, (b.rank + 1) * {RANK}) AS call_hi,
        coalesce(n.lo, l.last_lo) AS l_hi, b.lo AS sample_lo, coalesce(n.lo, l.last_lo) AS sample_hi,
        b.hi AS s_at, {_context("s", "b")},
        n.hi AS e_at, {_context("e", "x")},
        coalesce(n.hi, l.last_g) AS l_at,
        {", ".join(f"CASE WHEN n.g IS NULL THEN l.{name} ELSE x.{name} END AS l_{name}" for name in CONTEXT)},
        ({at0})::BIGINT AS at0, ({at1})::BIGINT AS at1
      FROM ({opened}) b JOIN {_lasts(facts)} l ON l.rank = b.rank
      LEFT JOIN instant n ON n.g = coalesce(b.next, CASE WHEN l.finished THEN l.last_g END)
      LEFT JOIN record x ON x.g = greatest(n.lo - 1, n.rank * {RANK})
      {skip}"""
    return f"SELECT *, {u_step} AS u_step, s_epoch AS u_epoch FROM ({_counted(facts, query)})"


_PLACE = "max(b.number - b.nth) OVER (PARTITION BY b.rank, b.step ORDER BY b.nth) + b.nth"
"""The place of a micro-batch in its step: its number, or the place after the one before, where that is greater."""


# --- calls --------------------------------------------------------------------------------------


def _of_calls(facts: Facts, window: Window, called: str) -> str:
    """The windows that calls are; `called` is a table `c, place` and the fields of filters."""
    lasts, steps = _lasts(facts), _steps(facts)
    begin, end = _context("s", "k", "b_"), _context("s", "k", "e_")
    fields = "q.* EXCLUDE (c)"
    if window.kind in ("before", "after"):
        side, here = ("b", begin) if window.kind == "before" else ("e", end)
        at = f"k.{side}_hi"
        also = ", ".join(here.replace(" AS s_", f" AS {m}_") for m in ("e", "l"))
        query = f"""
          SELECT k.rank, k.c, k.c AS located, coalesce(o.lo, l.first_g) AS call_lo, k.{side}_lo AS call_hi,
            k.{side}_lo AS l_hi, coalesce(o.lo, l.first_g) AS sample_lo, {at} + 1 AS sample_hi,
            {at} AS s_at, {here}, {at} AS e_at, {at} AS l_at, {also},
            k.b_step AS at0, q.place AS at1, k.b_step, k.b_epoch, k.b_microbatch, {fields}
          FROM {called} q JOIN calls k ON k.c = q.c JOIN {lasts} l ON l.rank = k.rank
          ASOF LEFT JOIN {steps} o ON o.rank = k.rank AND {at} >= o.hi
          {"WHERE k.e IS NOT NULL" if side == "e" else ""}"""
    else:
        last = ", ".join(
            f"CASE WHEN k.e IS NULL THEN l.{name} ELSE k.e_{name} END AS l_{name}"
            for name in CONTEXT
        )
        query = f"""
          SELECT k.rank, k.c, k.c AS located, k.b_hi + 1 AS call_lo, coalesce(k.e_lo, (k.rank + 1) * {RANK}) AS call_hi,
            coalesce(k.e_lo, l.last_lo) AS l_hi, k.b_hi + 1 AS sample_lo,
            coalesce(k.e_hi, l.last_g) + 1 AS sample_hi,
            k.b_hi AS s_at, {begin}, k.e_hi AS e_at, {_context("e", "k", "e_")},
            coalesce(k.e_hi, l.last_g) AS l_at, {last},
            k.b_step AS at0, q.place AS at1, k.b_step, k.b_epoch, k.b_microbatch, {fields}
          FROM {called} q JOIN calls k ON k.c = q.c JOIN {lasts} l ON l.rank = k.rank"""
    return f"SELECT *, at0 AS u_step, s_epoch AS u_epoch FROM ({_counted(facts, query, 'q.rank, q.c')})"


@dataclass(frozen=True, slots=True)
class _FilteredCalls:
    """A pattern's calls with the fields of its filters, and the tests that do not depend on
    subjects.

    `calls` has `c`, `rank`, `b_step`, `e`, `until` (the instant at which the filters are decided)
    and three columns for each filter: `b0` and `e0`, the values at begin and end, and `h0`, whether
    the end has one.
    """

    calls: str
    constant: tuple[tuple[int, str], ...]
    """Filter and its test, of a value written `@`."""
    open: tuple[tuple[int, Shape], ...]

    def matches(self, call: str, until: str) -> str:
        """SQL: the fields of a call known until then pass the constant tests."""
        tests = [
            test.replace("@", self.value(call, number, until)) for number, test in self.constant
        ]
        return " AND ".join(tests) or "true"

    def value(self, call: str, number: int, until: str) -> str:
        """SQL of a field of a call as known then."""
        known = f"{call}.h{number} AND {call}.e <= {until}"
        return f"CASE WHEN {known} THEN {call}.e{number} ELSE {call}.b{number} END"

    def alike(self, call: str, until: str, window: str) -> str:
        """SQL: the fields of a call as known then equal the window's."""
        pairs = [f"{self.value(call, n, until)} = {window}.f{n}" for n, _ in self.open]
        return " AND ".join(pairs) or "true"


def of_pattern(scope: QueryScope, pattern: EventPattern) -> RuleWindows:
    """A table `c, place, f0, ...` of the calls that are windows for the subjects with these fields."""
    facts = scope.facts
    found = _filters(scope, pattern)
    fields = "".join(f", {found.value('k', n, 'k.until')} AS f{n}" for n, _ in found.open)
    known = "".join(f" AND f{n} IS NOT NULL" for n, _ in found.open)
    matching = facts.table(
        f"""SELECT * FROM (SELECT k.c, k.rank, k.b_step, k.until{fields} FROM {found.calls} k
              WHERE {found.matches("k", "k.until")}) WHERE true{known}"""
    )
    nested = patterns.nesting(facts, pattern.events)
    outer = facts.table(
        f"""SELECT m.* FROM {matching} m ANTI JOIN (
              SELECT m.* FROM {matching} m JOIN {nested} n ON n.c = m.c
              JOIN {found.calls} o ON o.c = n.outside
              WHERE {found.matches("o", "m.until")} AND {found.alike("o", "m.until", "m")}) x
            ON x.c = m.c"""
    )
    kept = "".join(f", m.f{n}" for n, _ in found.open)
    late = scope.window.kind != "before" and any(
        ("end", event, each.field) in facts.types
        for event in pattern.events
        for each in pattern.filters
    )
    if not late:
        placed = f"""SELECT m.c, row_number() OVER (PARTITION BY m.rank, m.b_step{kept} ORDER BY m.c) - 1
            AS place{kept} FROM {outer} m"""
        return RuleWindows(facts.table(placed), found.open)
    earlier = facts.table(_earlier(found, outer, nested))
    placed = f"""SELECT m.c, coalesce(q.place, 0) AS place{kept} FROM {outer} m
        LEFT JOIN (SELECT c, count(*) AS place FROM {earlier} GROUP BY c) q ON q.c = m.c"""
    return RuleWindows(facts.table(placed), found.open, earlier)


def _earlier(found: _FilteredCalls, outer: str, nested: str) -> str:
    """Query `c, other` where fields become known at the end: only those known when the window is over count."""
    matching = f"{found.matches('o', 'm.until')} AND {found.alike('o', 'm.until', 'm')}"
    fields = "".join(f", m.f{n}" for n, _ in found.open)
    pairs = f"""SELECT m.c, o.c AS other, m.until{fields} FROM {outer} m
        JOIN {found.calls} o ON o.rank = m.rank AND o.b_step = m.b_step AND o.c < m.c
        WHERE {matching}"""
    return f"""SELECT p.c, p.other FROM ({pairs}) p ANTI JOIN (
          SELECT m.c, m.other FROM ({pairs}) m JOIN {nested} n ON n.c = m.other
          JOIN {found.calls} o ON o.c = n.outside WHERE {matching}) x
        ON x.c = p.c AND x.other = p.other"""


def _filters(scope: QueryScope, pattern: EventPattern) -> _FilteredCalls:
    from tspec.check.columnar.expressions import read

    facts, before = scope.facts, scope.window.kind == "before"
    columns: list[tuple[int, str]] = []
    constant: list[tuple[int, str]] = []
    open_filters: list[tuple[int, Shape]] = []
    for number, each in enumerate(pattern.filters):
        sides, shape = _field(facts, pattern, each.field)
        columns.append((number, sides))
        if is_constant(each.value):
            value = read(scope, each.value, Frame("l"))
            constant.append((number, _test(each.field, "(@)", shape, value)))
        elif each.field == "class":
            raise Unsupported("a window is filtered by a class that is computed")
        else:
            open_filters.append((number, shape))
    fields = "".join(
        f", s{n}.b AS b{n}, s{n}.e AS e{n}, {'false' if before else f'coalesce(s{n}.h, false)'} AS h{n}"
        for n, _ in columns
    )
    joins = " ".join(f"LEFT JOIN {sides} s{n} ON s{n}.c = k.c" for n, sides in columns)
    calls = facts.table(
        f"""SELECT k.c, k.rank, k.b_step, k.e, coalesce(k.e_hi, l.last_g) AS until{fields}
            FROM calls k JOIN {_lasts(facts)} l ON l.rank = k.rank {joins}
            WHERE k.event IN {texts(sorted(set(pattern.events)))}"""
    )
    return _FilteredCalls(calls, tuple(constant), tuple(open_filters))


def is_constant(expr: Expr) -> bool:
    if isinstance(expr, ListDisplay):
        return all(is_constant(item) for item in expr.items)
    return isinstance(expr, Constant)


def _field(facts: Facts, pattern: EventPattern, field: str) -> tuple[str, Shape]:
    """A table `c, b` of a field of the calls, of a subject's class if that is the field; and its shape."""
    source = reads.of_calls(facts, pattern.events, field, None)
    sides = patterns.both_sides(facts, source)
    if (
        field == "class"
        and isinstance(source.shape, SingleShape)
        and source.shape.name == "subject"
    ):
        classes = reads.of_subjects(facts, source.shape.kind, "class", None)
        if len(
            facts.ask(
                f"SELECT 1 FROM {classes.table} GROUP BY rank, sid HAVING count(*) > 1 LIMIT 1"
            )
        ):
            raise Unsupported("the class of a subject changes")
        return facts.table(
            f"""SELECT s.c, t.v AS b, t.v AS e, false AS h FROM {sides} s JOIN calls k ON k.c = s.c
                JOIN {classes.table} t ON t.rank = k.rank AND t.sid = s.b AND t.g <= coalesce(k.e_hi, t.g)"""
        ), classes.shape
    return sides, source.shape


def _test(field: str, known: str, shape: Shape, value: Cell) -> str:
    if field == "class":
        return f"coalesce({instance_of(known, value)}, false)" if shape == STRING else "false"
    if NOTHING in (shape, value.shape):
        return "false"
    return f"coalesce({equal(known, shape, value.value, value.shape)}, false)"

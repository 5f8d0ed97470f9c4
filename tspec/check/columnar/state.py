"""Fields of one subject or call in a frame: as-of joins with the samples, joins with the calls."""

from __future__ import annotations

from collections.abc import Iterable

from tspec.check.columnar import reads
from tspec.check.columnar.relation import own
from tspec.check.columnar.scope import Frame, QueryScope
from tspec.check.columnar.shapes import NOT_RECORDED, Cell, SingleShape, Unsupported


def of_subject(scope: QueryScope, base: Cell, field: str, frame: Frame, want: str | None) -> Cell:
    """The last sample at or before the instant; in a `first` frame, the first sample."""
    assert isinstance(base.shape, SingleShape)
    if not base.shape.kind:
        raise Unsupported("a field of subjects of several kinds is read")
    source = reads.of_subjects(scope.facts, base.shape.kind, field, want)
    at = frame.column("at")
    sid = own(scope.relation.column(base.value))
    if frame.first:
        first = scope.facts.table(
            "SELECT rank, sid, min(g) AS g, arg_min({'v': v, 'm': m}, g) AS f "
            f"FROM {source.table} GROUP BY rank, sid"
        )
        join = f"LEFT JOIN {first} s ON s.rank = r.rank AND s.sid = {sid} AND s.g <= r.{at}"
        columns = ("s.f.v", "CASE WHEN s.g IS NULL THEN 2::TINYINT ELSE s.f.m END")
    else:
        kind = "" if source.once else "ASOF "  # which takes several times as long
        join = (
            f"{kind}LEFT JOIN {source.table} s ON s.rank = r.rank AND s.sid = {sid} "
            f"AND r.{at} >= s.g"
        )
        columns = ("s.v", "CASE WHEN s.g IS NULL THEN 2::TINYINT ELSE s.m END")
    value, why = scope.relation.joined(join, columns)
    return _with_base(scope, base, Cell(value, why, source.shape))


def of_call(
    scope: QueryScope,
    base: Cell,
    events: Iterable[str],
    field: str,
    frame: Frame,
    want: str | None,
) -> Cell:
    """A field's value at the call's end, if it has ended at the instant, or else at its begin.

    Fields of the window's own call do not change; they are all known unless the instant is before
    it.
    """
    source = reads.of_calls(scope.facts, events, field, want)
    if not source.ends:
        return _of_begin(scope, base, source, frame.column("at"))
    sides = scope.facts.table(
        "SELECT c, "
        "max(v) FILTER (side = 0) AS bv, max(m) FILTER (side = 0) AS bm, bool_or(side = 0) AS b, "
        "max(v) FILTER (side = 1) AS ev, max(m) FILTER (side = 1) AS em, bool_or(side = 1) AS e "
        f"FROM {source.table} GROUP BY c"
    )
    named = own(scope.relation.column(base.value))
    still = base.value == "c" and scope.window.kind != "before"
    at = frame.column("at")
    ended = "s.e" if still else f"s.e AND k.e <= r.{at}"
    none = "s.c IS NULL" if still else f"s.c IS NULL OR r.{at} IS NULL"
    join = f"LEFT JOIN {sides} s ON s.c = {named}" + (
        "" if still else f" LEFT JOIN calls k ON k.c = {named}"
    )
    value, why = scope.relation.joined(
        join,
        (
            f"CASE WHEN {none} THEN NULL WHEN {ended} THEN s.ev ELSE s.bv END",
            f"CASE WHEN {none} THEN 2::TINYINT WHEN {ended} THEN s.em WHEN s.b THEN s.bm "
            "ELSE 2::TINYINT END",
        ),
    )
    return _with_base(scope, base, Cell(value, why, source.shape))


def _of_begin(scope: QueryScope, base: Cell, source: reads.ReadTable, at: str) -> Cell:
    """A field that only begins say is known as soon as there is the call."""
    named = own(scope.relation.column(base.value))
    still = base.value == "c" and scope.window.kind != "before"
    none = "s.c IS NULL" if still else f"s.c IS NULL OR r.{at} IS NULL"
    value, why = scope.relation.joined(
        f"LEFT JOIN {source.table} s ON s.c = {named}",
        (
            f"CASE WHEN {none} THEN NULL ELSE s.v END",
            f"CASE WHEN {none} THEN 2::TINYINT ELSE s.m END",
        ),
    )
    return _with_base(scope, base, Cell(value, why, source.shape))


def _with_base(scope: QueryScope, base: Cell, cell: Cell) -> Cell:
    """A field of a missing value is missing for the same reason."""
    if base.is_known:
        return cell
    return Cell(
        cell.value,
        scope.relation.column(
            f"CASE WHEN {base.why} IS NOT NULL THEN {base.why} ELSE {cell.why} END"
        ),
        cell.shape,
    )


def unread(scope: QueryScope, base: Cell) -> Cell:
    """A field that the value does not have: not recorded, unless the value itself is missing."""
    why = scope.relation.column(f"coalesce({base.why}, {NOT_RECORDED}::TINYINT)")
    return Cell("NULL::BOOLEAN", why, SingleShape("nothing"))

"""A trace as tables of an embedded DuckDB: records, calls, lives of subjects, boundaries.

Every record has a place `g` in the trace, which grows along its rank: rank * 2^40 + its number in the
stream. Ranks never share places, so a window is a range of places and needs no rank. Records may share
an instant: `lo` and `hi` are the first and the last place of an instant's records, so "at or before
this instant" is `g <= hi`, "before it" is `g < lo`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tspec.builtin.features import FEATURES
from tspec.check.columnar.fields import FieldIndex, Key
from tspec.check.columnar.sql import MACROS
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Rule, Window
from tspec.resolve.program.walk import parts
from tspec.trace.endings import EndsEarly, of_tables, of_trace
from tspec.trace.model import Trace, world_of_groups

if TYPE_CHECKING:
    import pyarrow as pa

RANK = 2**40
"""Places that each rank has."""

_SMALL = 200_000
"""Rows of a trace."""

_OF_RECORDS = frozenset(
    {"rank", "g", "place", "tag", "seq", "step", "epoch", "microbatch", "phase", "what", "call",
     "parent", "subject", "index", "gone", "location"}
)  # fmt: skip

HEAD = (
    "record", "place", "tag", "seq", "step", "epoch", "microbatch", "phase", "what", "call", "parent",
    "subject", "index", "gone", "location",
)  # fmt: skip
VALUE = ("field", "item", "type", "bool", "int", "float", "text")

_TABLES = (
    # Records that share an instant with another; nearly none.
    """shared AS SELECT rank, seq, min(g) AS lo, max(g) AS hi FROM record
       GROUP BY rank, seq HAVING count(*) > 1""",
    """instant AS SELECT r.*, coalesce(s.lo, r.g) AS lo, coalesce(s.hi, r.g) AS hi
       FROM record r LEFT JOIN shared s ON r.rank = s.rank AND r.seq = s.seq
       WHERE r.tag <> 'sample'""",
    """calls AS SELECT b.g AS c, b.rank, b.call, p.g AS parent, b.what AS event,
         b.lo AS b_lo, b.hi AS b_hi, b.step AS b_step, b.epoch AS b_epoch,
         b.microbatch AS b_microbatch, b.phase AS b_phase,
         e.g AS e, e.lo AS e_lo, e.hi AS e_hi, e.step AS e_step, e.epoch AS e_epoch,
         e.microbatch AS e_microbatch, e.phase AS e_phase
       FROM instant b
       LEFT JOIN instant e ON e.tag = 'end' AND e.rank = b.rank AND e.call = b.call
       LEFT JOIN instant p ON p.tag = 'begin' AND p.rank = b.rank AND p.call = b.parent
       WHERE b.tag = 'begin'""",
    """boundaries AS SELECT rank, g, lo, hi, what AS span, index AS number,
         step, epoch, microbatch, phase FROM instant WHERE tag = 'boundary'""",
    """ends AS SELECT rank, min(g) AS first, max(g) AS last, arg_max(tag, g) = 'finish' AS finished,
         CASE WHEN bool_or(ends_empty)
              THEN max(g) FILTER (tag = 'boundary' AND what = 'step') END AS empty_step,
         max(step) AS step, max(epoch) AS epoch, bool_or(tag = 'finish') AS any_finish
       FROM record GROUP BY rank""",
    """subjects AS SELECT subject AS sid, any_value(kind) AS kind, any_value(name) AS name
       FROM sample GROUP BY subject""",
    """firsts AS SELECT rank, subject AS sid, any_value(kind) AS kind, min(g) AS first,
         arg_min(step, g) AS step, arg_min(epoch, g) AS epoch FROM sample GROUP BY rank, subject""",
    # A life begins with a sample after none or a `gone` one, and ends with the next `gone` one.
    """lives AS SELECT rank, subject AS sid, kind, g AS born, died FROM (
         SELECT *, lead(g) OVER (PARTITION BY rank, subject ORDER BY g) AS died FROM (
           SELECT *, lag(gone) OVER (PARTITION BY rank, subject ORDER BY g) AS was FROM sample)
         WHERE was IS NULL OR was <> gone) WHERE NOT gone""",
)


@dataclass(frozen=True, slots=True)
class LoadedTrace:
    """A trace in memory: all rows of all ranks as one Arrow table, with `rank` and `g`, and an index."""

    rows: pa.Table
    fields: FieldIndex
    world: int
    ends_early: tuple[EndsEarly, ...] = ()
    """Ranks whose recordings end before the run does."""

    @property
    def is_small(self) -> bool:
        """Threads cost more than they save."""
        return bool(self.rows.num_rows < _SMALL)


class Facts:
    """The tables of one trace and those that rules derive from it.

    Must be closed; belongs to one thread.
    """

    def __init__(self, recording: LoadedTrace, threads: int) -> None:
        import duckdb

        self.world = recording.world
        self.con = duckdb.connect()
        self.names = itertools.count()
        self.cache: dict[Hashable, Any] = {}
        """Tables made for one rule and used again by the next, by their content."""
        self._fields = recording.fields
        self.types = self._fields.types
        self._load(recording.rows, threads)

    def __enter__(self) -> Facts:
        return self

    def __exit__(self, *_: object) -> None:
        self.con.close()

    def table(self, query: str) -> str:
        """The table of a query; asked for again, the same one."""
        if query not in self.cache:
            name = f"t{next(self.names)}"
            self.con.execute(f"CREATE TEMP TABLE {name} AS {query}")
            self.cache[query] = name
        return str(self.cache[query])

    def is_empty(self, table: str) -> bool:
        """A table has no rows."""
        return not self.ask(f"SELECT 1 FROM {table} LIMIT 1")

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return list(self.con.execute(query).fetchall())

    def forget(self, window: Window) -> None:
        """Read a window's values anew, since the query that read them failed."""
        self.cache.pop(("outer", window), None)

    def part(self, key: Key) -> str:
        """A table of the rows of one field, for a tag and kind (or event)."""
        asked = ("part", key)
        if asked not in self.cache:
            name = f"p{next(self.names)}"
            self.con.register(name, self._fields.rows(key))
            self.cache[asked] = name
        return str(self.cache[asked])

    def _load(self, rows: pa.Table, threads: int) -> None:
        con = self.con
        con.execute("SET preserve_insertion_order = false")
        con.execute("SET enable_progress_bar = false")
        con.execute(f"SET threads = {threads}")
        for macro in MACROS:
            con.execute(f"CREATE TEMP MACRO {macro}")
        con.register(
            "raw", rows.select([name for name in rows.column_names if name in _OF_RECORDS])
        )
        con.execute(
            """CREATE TEMP TABLE record AS SELECT rank, g, tag, seq, step, epoch, microbatch, phase,
                 what, call, parent, index, tag = 'finish' AND coalesce(gone, false) AS ends_empty
               FROM raw WHERE place = 0"""
        )
        con.execute(
            """CREATE TEMP TABLE sample AS SELECT rank, g, step, epoch, what AS kind, subject AS name,
                 hash(what || ' ' || subject) AS subject, coalesce(gone, false) AS gone
               FROM raw WHERE place = 0 AND tag = 'sample'"""
        )
        for table in _TABLES:
            con.execute(f"CREATE TEMP TABLE {table}")


def load(trace: Path | str | Trace, features: Collection[str]) -> LoadedTrace:
    """Read a trace; for tensors, only the requested features. Raises TraceError for a folder that
    is no trace.
    """
    read = _read(trace, features)
    rows = _together(read.streams)
    return LoadedTrace(rows, FieldIndex(rows), read.world, read.ends_early)


@dataclass(frozen=True, slots=True)
class LoadedTraces:
    """Several traces as one: rank `r` of the trace `first + n` is the rank `n * ranks + r` here.

    Its world and the groups of its ranks are those of no trace, unless it holds one alone.
    """

    whole: LoadedTrace
    first: int
    number: int
    ranks: int


def load_several(
    traces: Sequence[Path | str | Trace], features: Collection[str], most: int
) -> Iterator[LoadedTraces]:
    """Read traces, as many at once as have at most `most` rows together, or one. Raises as `load`."""
    first, held, rows = 0, list[_ReadTrace](), 0
    for number, trace in enumerate(traces):
        read = _read(trace, features)
        if held and rows + read.number_of_rows > most:
            yield _joined(held, first)
            first, held, rows = number, [], 0
        held.append(read)
        rows += read.number_of_rows
    if held:
        yield _joined(held, first)


def features_of(wanted: Sequence[Rule]) -> set[str]:
    """The features of tensors that rules read."""
    found = {"digest", "object"}
    for rule in wanted:
        for part in parts(rule):
            if isinstance(part, rules.Feature):
                row = FEATURES[part.name]
                found.update((part.name, *row.inputs, *row.inputs_of_many))
    return found


@dataclass(frozen=True, slots=True)
class _ReadTrace:
    """The rows of each rank, without the streams of workers."""

    streams: Sequence[tuple[int, pa.Table]]
    world: int
    ends_early: tuple[EndsEarly, ...]

    @property
    def number_of_rows(self) -> int:
        return sum(rows.num_rows for _, rows in self.streams)


def _read(trace: Path | str | Trace, features: Collection[str]) -> _ReadTrace:
    if isinstance(trace, Trace):
        from tspec.trace.write import table

        streams = [(s.rank, table(s.records)) for s in trace.streams if s.worker is None]
        world, early = trace.world, of_trace(trace)
    else:
        from tspec.trace.read import open_tables

        tables = open_tables(trace, {*HEAD, *VALUE, *features})
        streams = [(t.rank, t.rows) for t in tables.streams if t.worker is None]
        world, early = tables.world, of_tables(tables)
    return _ReadTrace(streams, world_of_groups((rank for rank, _ in streams), world), early)


def _joined(read: Sequence[_ReadTrace], first: int) -> LoadedTraces:
    ranks = 1 + max((rank for each in read for rank, _ in each.streams), default=0)
    rows = _together(
        [(n * ranks + rank, rows) for n, each in enumerate(read) for rank, rows in each.streams]
    )
    world = read[0].world if len(read) == 1 else 0
    return LoadedTraces(LoadedTrace(rows, FieldIndex(rows), world), first, len(read), ranks)


def _together(streams: Sequence[tuple[int, pa.Table]]) -> pa.Table:
    """All streams as one Arrow table, with `rank` and `g`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tspec.trace.columns import SCHEMA

    parts = []
    filled = [(rank, rows) for rank, rows in streams if rows.num_rows]
    for rank, rows in filled or [(0, SCHEMA.empty_table())]:
        ranks = pa.repeat(pa.scalar(rank, pa.int64()), rows.num_rows)
        places = pc.add(rows.column("record"), rank * RANK)
        parts.append(rows.append_column("rank", ranks).append_column("g", places))
    return pa.concat_tables(parts).unify_dictionaries()

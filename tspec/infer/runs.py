"""A survey of recorded runs, by queries over their rows; no record passes through Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tspec.builtin.events import RETURNED
from tspec.infer.axes import Partition, joined, telling
from tspec.infer.numbers import numbers
from tspec.infer.survey import SeenEvent, SeenKind, Survey
from tspec.resolve.program.rules import Vocabulary
from tspec.trace.read import open_tables

if TYPE_CHECKING:
    import duckdb

COLUMNS = (
    *("tag", "what", "call", "subject", "field", "item", "type", "text", "bool", "float", "dtype"),
    *("seq", "step", "phase", "place", "gone", "mean", "std", "zeros", "numel"),
)


def survey(runs: Sequence[Path], vocabulary: Vocabulary) -> Survey:
    """The survey of all runs. Raises TraceError for a folder without a trace."""
    with _rows(runs) as rows:
        fewest, steps = _steps(rows)
        per_event = _events(rows, len(runs))
        sampled = _sampled(rows, len(runs))
        return Survey(
            events=tuple(
                SeenEvent(event, calls / max(steps, 1), fields, floating)
                for event in vocabulary.events
                if event.name in per_event
                for calls, fields, floating in [per_event[event.name]]
            ),
            kinds=tuple(
                SeenKind(entity, sampled[entity.name])
                for entity in vocabulary.entities
                if entity.name in sampled
            ),
            axes=_axes(rows, vocabulary),
            classes=_classes(rows),
            ambient=sampled.get("context", frozenset()),
            steps=fewest,
            graphs=_graphs(rows, len(runs)),
            numbers=numbers(partial(_ask, rows), len(runs)),
        )


def _rows(runs: Sequence[Path]) -> duckdb.DuckDBPyConnection:
    """All rows of all ranks of all runs as the table `facts`."""
    import duckdb
    import pyarrow as pa

    parts = []
    for run, path in enumerate(runs):
        for stream in open_tables(path, COLUMNS).streams:
            if stream.worker is not None:
                continue
            part = stream.rows.select(list(COLUMNS))
            for name, number in (("run", run), ("rank", stream.rank)):
                part = part.append_column(name, pa.repeat(pa.scalar(number), part.num_rows))
            parts.append(part)
    connection = duckdb.connect()
    connection.register("facts", pa.concat_tables(parts).unify_dictionaries())
    return connection


def _ask(rows: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return list(rows.execute(query).fetchall())


def _steps(rows: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """Steps of the shortest stream, and steps of all streams together."""
    counts = [
        count
        for (count,) in _ask(
            rows,
            """SELECT count(*) FILTER (tag = 'boundary') - count(*) FILTER (tag = 'finish' AND gone)
               FROM facts WHERE (tag = 'boundary' AND what = 'step') OR tag = 'finish'
               GROUP BY run, rank""",
        )
    ]
    return min(counts, default=0), sum(counts)


def _events(
    rows: duckdb.DuckDBPyConnection, runs: int
) -> dict[str, tuple[int, frozenset[str], frozenset[str]]]:
    """For each event of every run: the number of its calls, its recorded fields, and those that are
    floating tensors.
    """
    counted = _ask(
        rows,
        f"""SELECT what, count(*) FROM facts WHERE tag = 'begin' AND place = 0
            GROUP BY what HAVING count(DISTINCT run) = {runs}""",
    )
    fields: dict[str, set[str]] = {}
    floating: dict[str, set[str]] = {}
    for event, field, floats in _ask(
        rows,
        """SELECT named.what, said.field, coalesce(bool_or(contains(said.dtype, 'float')), false)
           FROM facts said JOIN facts named USING (run, rank, call)
           WHERE named.tag = 'begin' AND named.place = 0 AND said.tag IN ('begin', 'end')
             AND said.field IS NOT NULL AND said.type <> 'not recorded'
           GROUP BY ALL""",
    ):
        if field == RETURNED:  # of every call that is over
            continue
        fields.setdefault(event, set()).add(field)
        if floats:
            floating.setdefault(event, set()).add(field)
    return {
        event: (calls, frozenset(fields.get(event, ())), frozenset(floating.get(event, ())))
        for event, calls in counted
    }


def _sampled(rows: duckdb.DuckDBPyConnection, runs: int) -> dict[str, frozenset[str]]:
    """For each kind that was sampled in every run, the fields that were present in every run."""
    kinds: dict[str, set[str]] = {}
    for kind, field in _ask(
        rows,
        f"""SELECT what, field FROM facts
            WHERE tag = 'sample' AND field IS NOT NULL AND type NOT IN ('not recorded', 'absent')
            GROUP BY what, field HAVING count(DISTINCT run) = {runs}""",
    ):
        kinds.setdefault(kind, set()).add(field)
    return {kind: frozenset(fields) for kind, fields in kinds.items()}


def _axes(rows: duckdb.DuckDBPyConnection, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The axes that drafts may name, in the vocabulary's order."""
    seen: dict[str, dict[int, Partition]] = {"world": {}}
    for run, ranks in _ask(rows, "SELECT run, list(DISTINCT rank) FROM facts GROUP BY run"):
        seen["world"][run] = joined([frozenset(ranks)])
    for axis, run, texts in _ask(
        rows,
        """SELECT subject, run, list(DISTINCT text) FROM facts
           WHERE tag = 'sample' AND what = 'group' AND field = 'ranks' AND subject <> 'world'
           GROUP BY subject, run""",
    ):
        seen.setdefault(axis, {})[run] = joined(map(_members, texts))
    return telling(vocabulary.groups, seen)


def _members(text: Any) -> frozenset[int]:
    """The ranks of a recorded group."""
    if not isinstance(text, str):
        return frozenset()
    value = json.loads(text)
    return frozenset(value if isinstance(value, list) else next(iter(value.values())))


def _graphs(rows: duckdb.DuckDBPyConnection, runs: int) -> tuple[frozenset[frozenset[str]], ...]:
    """For each run the sets of operations of its backward passes, including rare ones."""
    found: list[set[frozenset[str]]] = [set() for _ in range(runs)]
    for run, text in _ask(
        rows,
        """SELECT DISTINCT said.run, said.text
           FROM facts said JOIN facts named USING (run, rank, call)
           WHERE named.tag = 'begin' AND named.place = 0 AND named.what = 'backward'
             AND said.field = 'operations' AND said.type = 'json'""",
    ):
        operations = frozenset(json.loads(text)["set"])
        if operations:
            found[run].add(operations)
    return tuple(map(frozenset, found))


def _classes(rows: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """`torch.nn` classes of the modules that hold parameters, shortest spelling, in alphabetical order."""
    found = _ask(
        rows,
        """SELECT DISTINCT split_part(class.text, ' ', 1)
           FROM facts class JOIN facts held ON held.run = class.run AND held.rank = class.rank
             AND class.subject = split_part(held.text, ' ', 2)
           WHERE class.tag = 'sample' AND class.what = 'module' AND class.field = 'class'
             AND held.tag = 'sample' AND held.what = 'parameter' AND held.field = 'module'""",
    )
    return tuple(
        sorted(path for (path,) in found if path.startswith("torch.nn.") and path.count(".") == 2)
    )

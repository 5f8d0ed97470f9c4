"""A survey of recorded runs, by queries over their rows; no record passes through Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tspec.infer.survey import SeenEvent, SeenKind, Survey
from tspec.resolve.program.rules import Vocabulary
from tspec.trace.read import open_tables

if TYPE_CHECKING:
    import ibis.expr.types as ir

COLUMNS = ("tag", "what", "call", "parent", "subject", "index", "field", "type", "text", "place")


def survey(runs: Sequence[Path], vocabulary: Vocabulary) -> Survey:
    """The survey of all runs. Raises TraceError for a folder without a trace."""
    rows = _rows(runs)
    steps = _steps(rows)
    per_event = _events(rows, len(runs))
    return Survey(
        events=tuple(
            SeenEvent(event, per_event[event.name][0] / max(steps[1], 1), per_event[event.name][1])
            for event in vocabulary.events
            if event.name in per_event
        ),
        kinds=_kinds(rows, len(runs), vocabulary),
        axes=_axes(rows, vocabulary),
        classes=_classes(rows),
        ambient=_sampled(rows, len(runs)).get("context", frozenset()),
        steps=steps[0],
    )


def _rows(runs: Sequence[Path]) -> ir.Table:
    """All rows of all ranks of all runs as one relation of DuckDB's."""
    import ibis
    import pyarrow as pa

    parts = []
    for run, path in enumerate(runs):
        for stream in open_tables(path).streams:
            if stream.worker is not None:
                continue
            part = stream.rows.select(list(COLUMNS))
            part = pa.table(
                {
                    name: column.cast(pa.string())
                    if pa.types.is_dictionary(column.type)
                    else column
                    for name, column in zip(part.column_names, part.columns, strict=True)
                }
            )
            for name, number in (("run", run), ("rank", stream.rank)):
                part = part.append_column(name, pa.array([number] * part.num_rows, pa.int32()))
            parts.append(part)
    connection = ibis.duckdb.connect()
    return connection.create_table("facts", ibis.memtable(pa.concat_tables(parts)), temp=True)


def _steps(rows: ir.Table) -> tuple[int, int]:
    """Steps of the shortest stream, and steps of all streams together."""
    opened = rows.filter((rows.tag == "boundary") & (rows.what == "step"))
    counts = opened.group_by(["run", "rank"]).agg(n=opened.count()).n.execute()
    return (int(counts.min()), int(counts.sum())) if len(counts) else (0, 0)


def _events(rows: ir.Table, runs: int) -> dict[str, tuple[int, frozenset[str]]]:
    """For each event of every run: how many calls, and which of its fields were recorded."""
    begun = rows.filter((rows.tag == "begin") & (rows.place == 0))
    counted = begun.group_by("what").agg(calls=begun.count(), runs=begun.run.nunique()).execute()
    named = begun.select("run", "rank", "call", event=begun.what)
    said = rows.filter(rows.tag.isin(["begin", "end"]) & rows.field.notnull())
    said = said.filter(said.type != "not recorded")
    fields = said.join(named, ["run", "rank", "call"]).select("event", "field").distinct().execute()
    by_event: dict[str, set[str]] = {}
    for event, field in fields.itertuples(index=False):
        by_event.setdefault(event, set()).add(field)
    return {
        row.what: (int(row.calls), frozenset(by_event.get(row.what, ())))
        for row in counted.itertuples(index=False)
        if row.runs == runs
    }


def _sampled(rows: ir.Table, runs: int) -> dict[str, frozenset[str]]:
    """For each kind that was sampled in every run, the fields that were present in every run."""
    samples = rows.filter((rows.tag == "sample") & rows.field.notnull())
    samples = samples.filter(samples.type.notin(["not recorded", "absent"]))
    seen = samples.group_by(["what", "field"]).agg(runs=samples.run.nunique()).execute()
    kinds: dict[str, set[str]] = {}
    for kind, field, count in seen.itertuples(index=False):
        if count == runs:
            kinds.setdefault(kind, set()).add(field)
    return {kind: frozenset(fields) for kind, fields in kinds.items()}


def _kinds(rows: ir.Table, runs: int, vocabulary: Vocabulary) -> tuple[SeenKind, ...]:
    sampled = _sampled(rows, runs)
    return tuple(
        SeenKind(entity, sampled[entity.name])
        for entity in vocabulary.entities
        if entity.name in sampled
    )


def _axes(rows: ir.Table, vocabulary: Vocabulary) -> tuple[str, ...]:
    """Axes on which more than one rank was seen in some run, in the vocabulary's order.

    Of an axis that is the whole world wherever it is seen nothing is said but what is said of the
    world, which every job has.
    """
    groups = rows.filter((rows.tag == "sample") & (rows.what == "group") & (rows.field == "ranks"))
    ranks = rows.group_by("run").agg(n=rows["rank"].nunique()).execute()
    worlds = {run: n for run, n in ranks.itertuples(index=False) if n > 1}
    sizes: dict[str, dict[int, int]] = {}
    members = groups.select("run", "subject", "text").distinct().execute()
    for run, axis, text in members.itertuples(index=False):
        if (size := _length(text)) > 1:
            sizes.setdefault(axis, {})[run] = size
    sizes["world"] = worlds
    narrow = {axis for axis, size in sizes.items() if size and not size.items() <= worlds.items()}
    wanted = narrow | ({"world"} if worlds else set())
    return tuple(group.name for group in vocabulary.groups if group.name in wanted)


def _length(text: Any) -> int:
    """How many ranks a recorded group has."""
    if not isinstance(text, str):
        return 0
    value = json.loads(text)
    inner = value if isinstance(value, list) else next(iter(value.values()))
    return len(inner)


def _classes(rows: ir.Table) -> tuple[str, ...]:
    """`torch.nn` classes of the modules that hold parameters, shortest spelling, in alphabetical order."""
    samples = rows.filter(rows.tag == "sample")
    held = samples.filter((samples.what == "parameter") & (samples.field == "module"))
    names = held.select("run", "rank", subject=held.text.split(" ")[1]).distinct()
    classes = samples.filter((samples.what == "module") & (samples.field == "class"))
    found = classes.join(names, ["run", "rank", "subject"]).select("text").distinct().execute()
    shortest = {
        path
        for text in found.text
        for path in [str(text).split(" ")[0]]
        if path.startswith("torch.nn.") and path.count(".") == 2
    }
    return tuple(sorted(shortest))

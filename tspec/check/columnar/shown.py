"""The values that violated instances show, as text, and lines of the script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tspec.check.columnar.decide import InstanceTable
from tspec.check.columnar.facts import Facts
from tspec.check.columnar.shapes import (
    REASONS,
    ListShape,
    MapShape,
    Shape,
    SingleShape,
)
from tspec.check.columnar.sql import text
from tspec.plan.shown import ShownValue
from tspec.reasons import DIFFER
from tspec.trace.model import Location, Missing, Ref, Tensor
from tspec.trace.values import decode, decode_location
from tspec.values import Datum, show

MOST = 1000
"""The number of violated instances of a rule whose values are read; a finding shows the first."""


def shown(decisions: InstanceTable, facts: Facts) -> Mapping[int, Mapping[str, str]]:
    """For the first violated instances of a rule, by their `row`: read -> value."""
    if not decisions.shown:
        return {}
    cells = ", ".join(f"{cell.value}, {cell.why}" for _, cell in decisions.shown)
    rows = facts.ask(
        f"""SELECT {decisions.group}, rank, {cells} FROM {decisions.rows} WHERE {decisions.group} IN (
              SELECT row FROM {decisions.table} WHERE verdict = 'violated'
                AND reason IS DISTINCT FROM {text(DIFFER)}
              ORDER BY step, at0, at1 LIMIT {MOST}) ORDER BY rank"""
    )
    names = _ShownNames(facts)
    members: dict[int, list[tuple[int, list[str]]]] = {}
    for row, rank, *values in rows:
        texts = [
            names.text(values[2 * n], values[2 * n + 1], cell.shape)
            for n, (_, cell) in enumerate(decisions.shown)
        ]
        members.setdefault(row, []).append((rank, texts))
    reads = [each for each, _ in decisions.shown]
    return {row: _of_instance(reads, each) for row, each in members.items()}


def locations(decisions: InstanceTable, facts: Facts) -> Mapping[int, Location]:
    """For the first violated instances of a rule, by their `row`: the line that it points at."""
    lines = facts.table("SELECT g, location FROM raw WHERE place = 0 AND location IS NOT NULL")
    rows = facts.ask(
        f"""SELECT v.row, l.location FROM (
              SELECT row, located FROM {decisions.table} WHERE verdict = 'violated'
              ORDER BY step, at0, at1 LIMIT {MOST}) v JOIN {lines} l ON l.g = v.located"""
    )
    return {row: decode_location(text) for row, text in rows}


def _of_instance(reads: list[ShownValue], members: list[tuple[int, list[str]]]) -> dict[str, str]:
    """The shown values of an instance. Values that differ between members are shown for each
    member.
    """
    found = {}
    for number, each in enumerate(reads):
        texts = [values[number] for _, values in members]
        if len(members) == 1 or (len(set(texts)) == 1 and not each.each_member):
            found[each.text] = texts[0]
        else:
            found[each.text] = ", ".join(
                f"rank {rank}: {values[number]}" for rank, values in members
            )
    return found


class _ShownNames:
    """Values of queries as values of the trace; subjects' names are looked up once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._subjects: dict[int, Ref] | None = None

    def text(self, value: Any, why: int | None, shape: Shape) -> str:
        return show(self._datum(value, why, shape))

    def _datum(self, value: Any, why: int | None, shape: Shape) -> Datum:
        if why is not None:
            return Missing(REASONS[why])
        if isinstance(shape, ListShape):
            items = [self._datum(item["v"], item["m"], shape.item) for item in value]
            return frozenset(items) if shape.is_set else tuple(items)
        if isinstance(shape, MapShape):
            return {key: decode(json.dumps(item)) for key, item in json.loads(value).items()}
        assert isinstance(shape, SingleShape)
        if shape.name == "subject":
            return self._subject(value)
        if shape.name == "tensor":
            return Tensor(digest=value)
        if shape.name == "call":
            return shape.kind.split("\n")[0]
        return value

    def _subject(self, key: int) -> Ref:
        if self._subjects is None:
            rows = self._facts.ask("SELECT sid, kind, name FROM subjects")
            self._subjects = {sid: Ref(kind, name) for sid, kind, name in rows}
        return self._subjects.get(key, Ref("", "?"))

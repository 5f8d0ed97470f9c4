"""The rows of a trace by field, so that what one rule reads is found without reading the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from tspec.builtin.features import FEATURES

if TYPE_CHECKING:
    import pyarrow as pa

Key: TypeAlias = tuple[str, str, str]
"""Tag, kind or event, and field."""

KEPT = (
    "rank", "g", "what", "subject", "item", "type", "bool", "int", "float", "text",
    *FEATURES, "object",
)  # fmt: skip


class FieldIndex:
    """An index of an Arrow table of `tspec.trace.columns`, with `rank` and `g`."""

    def __init__(self, rows: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self._rows = rows.select([name for name in KEPT if name in rows.column_names])
        codes, names = [], []
        for column in ("tag", "what", "field", "type"):
            coded = rows.column(column).combine_chunks()
            names.append(coded.dictionary.to_pylist())
            codes.append(coded.indices.fill_null(-1))
        tag, what, field, kind = codes
        key = pc.add(pc.multiply(pc.cast(tag, pa.int64()), len(names[1]) + 1), pc.add(what, 1))
        key = pc.add(pc.multiply(key, len(names[2]) + 1), pc.add(field, 1))
        self._order = pc.sort_indices(key)
        item = pc.is_valid(rows.column("item"))
        found = pa.table(
            {"key": key, "tag": tag, "what": what, "field": field, "kind": kind, "item": item}
        )
        self.types: dict[Key, frozenset[tuple[str, bool]]] = {}
        """The types of a field's values, and whether they are a list's items."""
        self._ranges: Mapping[Key, tuple[int, int]] = self._read(found, names)

    def _read(self, found: pa.Table, names: list[list[str]]) -> dict[Key, tuple[int, int]]:
        grouped = found.group_by(found.column_names).aggregate([([], "count_all")]).to_pylist()
        ranges: dict[Key, tuple[int, int]] = {}
        types: dict[Key, set[tuple[str, bool]]] = {}
        start, last = 0, None
        for row in sorted(grouped, key=lambda row: int(row["key"])):
            count = row["count_all"]
            if row["field"] >= 0:
                key = (names[0][row["tag"]], _name(names[1], row["what"]), names[2][row["field"]])
                types.setdefault(key, set()).add((names[3][row["kind"]], row["item"]))
                begin = ranges[key][0] if last == row["key"] else start
                ranges[key] = (begin, start + count)
            start, last = start + count, row["key"]
        self.types.update({key: frozenset(kinds) for key, kinds in types.items()})
        return ranges

    def rows(self, key: Key) -> pa.Table:
        """The rows of one field, in no order, as an Arrow table."""
        start, stop = self._ranges.get(key, (0, 0))
        return self._rows.take(self._order.slice(start, stop - start))


def _name(names: list[str], code: int) -> str:
    """The end of a call that never began has no event."""
    return names[code] if code >= 0 else ""

"""The parameters in a recording that are sharded over ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from tspec.trace.values import decode

COLUMNS = ("tag", "what", "subject", "field", "text")
_FIELDS = ("whole_shape", "cuts")


@dataclass(frozen=True, slots=True)
class ParameterSharding:
    """The sharding of a parameter: the shape of the full tensor, and `Shard(0) over tp` for each
    cut.
    """

    whole_shape: tuple[int, ...]
    cuts: tuple[str, ...]


def shardings(rows: pa.Table) -> dict[str, ParameterSharding]:
    """Parameter -> how it is cut, of rows with at least `COLUMNS`.

    A cut that was known once counts: a job that ends its process group no longer knows any.
    """
    wanted = pc.and_(
        pc.equal(rows.column("what").cast(pa.string()), "parameter"),
        pc.is_in(rows.column("field").cast(pa.string()), pa.array(_FIELDS)),
    )
    is_sample = pc.equal(rows.column("tag").cast(pa.string()), "sample")
    kept = rows.filter(pc.and_(wanted, is_sample)).select(("subject", "field", "text"))
    shapes: dict[str, tuple[int, ...]] = {}
    found: dict[str, ParameterSharding] = {}
    for row in kept.to_pylist():
        name, value = row["subject"], decode(row["text"]) if row["text"] else None
        if not isinstance(value, tuple):
            continue
        if row["field"] == "whole_shape":
            shapes[name] = cast(tuple[int, ...], value)
        elif name in shapes:
            found[name] = ParameterSharding(shapes[name], cast(tuple[str, ...], value))
    return found

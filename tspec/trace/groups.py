"""The groups of each rank in a recording."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tspec.trace.values import decode


def groups(rows: pa.Table) -> dict[int, dict[str, tuple[int, ...]]]:
    """Rank -> axis -> the ranks of its group, of rows with a column `rank`.

    The last group that was known counts: a job that ends its process group no longer knows any.
    """
    wanted = pc.and_(
        pc.equal(rows.column("what").cast(pa.string()), "group"),
        pc.equal(rows.column("field").cast(pa.string()), "ranks"),
    )
    is_sample = pc.equal(rows.column("tag").cast(pa.string()), "sample")
    kept = rows.filter(pc.and_(wanted, is_sample)).select(("rank", "subject", "text"))
    found: dict[int, dict[str, tuple[int, ...]]] = {}
    for row in kept.to_pylist():
        value = decode(row["text"]) if row["text"] else None
        if isinstance(value, tuple):
            found.setdefault(row["rank"], {})[row["subject"]] = tuple(
                rank for rank in value if isinstance(rank, int)
            )
    return found

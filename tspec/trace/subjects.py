"""The order in which the subjects of a recording came to be."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def places(rows: pa.Table) -> dict[str, int]:
    """Subject -> its place in the order of first samples, which is that of registration in the model.

    `rows` are those of all ranks, the first rank's in front.
    """
    samples = rows.filter(pc.equal(rows.column("tag").cast(pa.string()), "sample"))
    names = pc.unique(samples.column("subject").cast(pa.string())).to_pylist()
    return {name: place for place, name in enumerate(names)}

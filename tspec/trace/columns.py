"""The columns of a trace's stream: one wide table, a row for each field of each record.

A record without fields is one row with no field. `place` counts the rows of a record from 0, so the
rows of place 0 are the records. `tag` is the kind of the record. `what` is the event of a call, the
kind of a sample or the span of a boundary. `type` selects the columns that hold the field's value.
"""

from __future__ import annotations

import pyarrow as pa

from tspec import __version__
from tspec.builtin.features import FEATURES as features

FORMAT = 3
"""The version of the file format. It grows if a current reader could misread new files. Older
formats are still read.

1: a plain Arrow stream. 2: each batch has a header with a checksum, and so has `meta.json`. 3:
calls and boundaries have a location.
"""

NAMES = pa.dictionary(pa.int32(), pa.string())
"""For columns with few distinct strings; each string is written once."""

HEAD = (
    ("record", pa.int64()),
    ("place", pa.int32()),
    ("tag", NAMES),
    ("seq", pa.int64()),
    ("step", pa.int64()),
    ("epoch", pa.int64()),
    ("microbatch", pa.int64()),
    ("phase", NAMES),
    ("what", NAMES),
    ("call", pa.int64()),
    ("parent", pa.int64()),
    ("callable", NAMES),
    ("subject", pa.string()),
    ("index", pa.int64()),
    ("gone", pa.bool_()),
    ("error", NAMES),
    ("time", pa.int64()),
    ("location", NAMES),
)
"""The columns of a record itself. `time` is in ns since 1970, on the first record of a batch and on
boundaries. `location` is that of a begin, a boundary or a finish, as JSON (see
`tspec.trace.values`). It is one column, since each column costs bytes in each batch.
"""

VALUE = (
    ("field", NAMES),
    ("item", pa.int32()),
    ("type", NAMES),
    ("bool", pa.bool_()),
    ("int", pa.int64()),
    ("float", pa.float64()),
    ("text", pa.string()),
)
"""A field's name and value. `type` is `bool`, `int`, `float`, `string` (in `text`), `json` (in
`text`, see `tspec.trace.values`), `ref` (`kind name` in `text`), `tensor` (in the features' columns),
`list` (its length in `int`, and a row for each `item`, counted from 0: lists that hold tensors) or
the name of a `Missing`."""

_KINDS = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "string": NAMES,
    "shape": pa.list_(pa.int64()),
}
FEATURES = (
    # Names of tensors hardly repeat.
    *(
        (row.name, pa.string() if row.name == "name" else _KINDS[row.kind])
        for row in features.values()
    ),
    ("object", pa.int64()),
)
"""The features of a tensor, named as in `tspec.trace.model.Tensor`."""

COLUMNS = (*HEAD, *VALUE, *FEATURES)

SCHEMA = pa.schema(
    [pa.field(name, kind) for name, kind in COLUMNS],
    metadata={"tspec.trace": str(FORMAT), "tspec": __version__},
)
"""The schema's metadata have the format and the version of tspec that wrote the file, in every
format.
"""

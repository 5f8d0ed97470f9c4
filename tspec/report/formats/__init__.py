"""The formats of results: one file each, with a function from `Results` to text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from tspec.report.results import Results

FORMATS = ("text", "json", "sarif", "junit", "github", "html")
"""The formats by the names of their files here; each has a function `write`."""

SUFFIXES: Mapping[str, str] = {
    ".json": "json",
    ".sarif": "sarif",
    ".xml": "junit",
    ".txt": "text",
    ".html": "html",
}
"""The format of a file, by the ending of its name."""


def written(results: Results, output_format: str) -> str:
    """The results in a format, as text that ends with a newline; empty if there is nothing to
    write.
    """
    write: Callable[[Results], str] = import_module(f"{__name__}.{output_format}").write
    return write(results)

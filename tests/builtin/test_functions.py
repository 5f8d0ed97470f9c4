"""One row for each function: every executor and the page have each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tspec.builtin.functions import FUNCTIONS
from tspec.check.interpret import values as interpret

PAGE = Path(__file__).resolve().parents[2] / "docs/design/semantics.md"


def test_every_executor_has_every_function() -> None:
    """DuckDB calls `of` where a row has no SQL; `isinstance` is each executor's own."""
    executors = {
        "tspec.check.interpret.values": {*interpret.FUNCTIONS, "isinstance"},
        "tspec.runtime.functions, tspec.check.columnar.operators": {
            *(row.name for row in FUNCTIONS.values() if row.of), "isinstance",
        },
    }  # fmt: skip
    assert {name: sorted({*FUNCTIONS} - known) for name, known in executors.items()} == {
        name: [] for name in executors
    }


def test_the_page_lists_the_functions() -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition("\n## Functions\n")
    rows = re.findall(r"^\| (`.*?) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)\(", " ".join(rows))) == sorted(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_is_whole(name: str) -> None:
    row = FUNCTIONS[name]
    assert len(row.named) < len(row.takes)
    assert row.result != "bool" or row.phrase is not None, "`tspec why` says conditions in words"

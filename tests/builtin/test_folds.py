"""One row for each fold: every executor and the page have each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tspec.builtin.folds import FOLDS
from tspec.check.columnar import folds as columnar
from tspec.check.interpret import folds as interpret
from tspec.runtime import folds as hooks
from tspec.runtime.series import sliding

PAGE = Path(__file__).resolve().parents[2] / "docs/design/semantics.md"


def test_every_executor_has_every_fold() -> None:
    executors = {
        "tspec.check.interpret.folds": {*interpret.DECIDED_EARLY, *interpret.NUMERIC, "count"},
        "tspec.check.columnar.folds": {
            *columnar.EARLY, *(row.name for row in FOLDS.values() if row.sql), "count",
        },
        "tspec.runtime.folds": {
            *hooks.DECIDED_EARLY, *(row.name for row in FOLDS.values() if row.of), "count",
        },
        "tspec.runtime.series.sliding": {*sliding.FOLDS},
    }  # fmt: skip
    assert {name: sorted({*FOLDS} - known) for name, known in executors.items()} == {
        name: [] for name in executors
    }


def test_the_page_lists_the_folds() -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition("\n## Folds\n")
    rows = re.findall(r"^\| (`.*?) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(FOLDS)


@pytest.mark.parametrize("name", FOLDS)
def test_a_row_is_whole(name: str) -> None:
    row = FOLDS[name]
    assert (row.words is None) == (row.result == "bool")
    assert row.mutant is None or FOLDS[row.mutant].result == row.result
    if row.of is not None:
        for value in (0.0, 2.5):
            assert row.of(row.numbers(value, 3)) == pytest.approx(value) or name == "std"
            assert row.of(row.numbers(value, 4)) == pytest.approx(value)

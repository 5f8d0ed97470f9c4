"""Faults of layouts: one case file for each code, and none where the shards tile."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tspec.diagnostics import WIDTH, render
from tspec.explain import codes, explain
from tspec.layout.faults import checked, faults
from tspec.resolve import load_text

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests/cases/layouts").glob("*.case"))
CODES = ("TS0200", "TS0201", "TS0202", "TS0203", "TS0204")
FENCE = re.compile(r"```tspec (bad|good)\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(
    path: Path,
    case_input: Callable[[Path], str],
    check_case: Callable[[Path, dict[str, str]], None],
) -> None:
    loaded = load_text(case_input(path), name=f"{path.stem}.tspec")
    assert loaded.program is not None, [each.message for each in loaded.diagnostics]
    said = [render(found) for found in faults(loaded.program)]
    assert all(len(line) <= WIDTH for text in said for line in text.splitlines())
    check_case(path, {"faults": "\n\n".join(said)})


def test_every_code_has_a_case_and_a_page() -> None:
    said = "".join(path.read_text() for path in CASES)
    assert [code for code in CODES if f"[{code}]" not in said] == []
    assert tuple(code for code in codes() if code.startswith("TS02")) == CODES


@pytest.mark.parametrize("code", CODES)
def test_the_examples_are_right(code: str) -> None:
    title, _, rest = explain(code).partition("\n")
    assert re.fullmatch(rf"# {code}: [a-z`].*[^.]", title)
    examples = FENCE.findall(rest)
    assert [kind for kind, _ in examples] == ["bad", "good"]
    for kind, text in examples:
        loaded = checked(load_text(text))
        assert {each.code for each in loaded.diagnostics} == ({code} if kind == "bad" else set())
        assert (loaded.program is None) == (kind == "bad")

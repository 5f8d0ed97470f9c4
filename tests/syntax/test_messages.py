"""What is said about texts that cannot be read: case files, one for each code at least."""

import re
from pathlib import Path

import pytest

import tspec
from tspec.diagnostics import WIDTH, render
from tspec.source import Source
from tspec.syntax.parse import parse

FOLDER = Path(__file__).parents[1] / "cases" / "syntax"
CASES = sorted(FOLDER.glob("*.case"))
ROOM = Path(tspec.__file__).parent
CODES = sorted(
    {
        code
        for path in (ROOM / "syntax").glob("*.py")
        for code in re.findall(r'"(TS\d{4})"', path.read_text(encoding="utf-8"))
    }
)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path, case_input, check_case):
    source = Source(f"{path.stem}.tspec", case_input(path))
    rendered = [render(found) for found in parse(source).diagnostics]
    assert all(len(line) <= WIDTH for text in rendered for line in text.splitlines())
    check_case(path, {"diagnostics": "\n\n".join(rendered)})


def test_every_code_is_produced_by_a_case():
    shown = "".join(path.read_text(encoding="utf-8") for path in CASES)
    assert [code for code in CODES if f"[{code}]" not in shown] == []


def examples(code):
    page = (ROOM / "codes" / f"{code}.md").read_text(encoding="utf-8")
    return re.findall(r"```tspec (bad|good)\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize("code", CODES)
def test_the_examples_of_its_page_are_right(code):
    kinds = [kind for kind, _ in examples(code)]
    assert "bad" in kinds
    assert "good" in kinds
    for kind, text in examples(code):
        found = [each.code for each in parse(Source("example.tspec", text)).diagnostics]
        assert found == ([code] if kind == "bad" else [])

"""The page of each code: its examples do what the page says, and no code lacks one."""

import re
from pathlib import Path

import pytest

import tspec
from tspec.explain import UnknownCode, as_text, codes, explain
from tspec.resolve import load

ROOM = Path(tspec.__file__).parent
USED = sorted(
    {
        code
        for folder in ("syntax", "resolve")
        for path in (ROOM / folder).rglob("*.py")
        for code in re.findall(r'"(TS\d{4})"', path.read_text(encoding="utf-8"))
    }
)
FENCE = re.compile(r"```tspec (bad|good)(?: (\S+))?\n(.*?)```", re.DOTALL)


def examples(code):
    """The files of the bad example, and those of the good one."""
    found = {"bad": {}, "good": {}}
    for kind, name, text in FENCE.findall(explain(code)):
        name = name or "example.tspec"
        assert name not in found[kind]
        found[kind][name] = text
    return found


def test_every_code_in_use_has_a_page_and_every_page_a_code():
    assert [code for code in codes() if code < "TS0200"] == USED
    assert len(USED) >= 30


@pytest.mark.parametrize("code", [code for code in codes() if code in USED])
def test_the_examples_are_right(code, tmp_path):
    title, _, rest = explain(code).partition("\n")
    assert re.fullmatch(rf"# {code}: [a-z`].*[^.]", title)
    assert rest.strip()
    for kind, files in examples(code).items():
        assert files
        folder = tmp_path / kind
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        loaded = load([folder], project=folder)
        assert {each.code for each in loaded.diagnostics} == ({code} if kind == "bad" else set())
        failed = any(each.severity == "error" for each in loaded.diagnostics)
        assert (loaded.program is None) == failed


def test_an_unknown_code_names_the_nearest():
    with pytest.raises(UnknownCode, match="did you mean `TS0120`"):
        explain("TS120")


def test_case_does_not_matter():
    assert explain("ts0120") == explain("TS0120")


MARK = re.compile(r"(Bad|Good)(, in .*)?:")


@pytest.mark.parametrize("code", codes())
def test_a_page_on_a_terminal_has_all_words_in_80_columns_and_the_lines_of_its_examples(code):
    page = explain(code)
    fence = re.compile(r"```\w+ [^\n]*\n(.*?)```\n?", re.DOTALL)
    rest, prose = as_text(page) + "\n", []
    for example in fence.findall(page):
        before, rest = rest.split("\n\n" + example, 1)
        *lines, mark = before.splitlines()
        assert MARK.fullmatch(mark)
        prose += lines
    prose += rest.splitlines()
    assert max(map(len, prose)) <= 80
    words = re.sub(fence, "", page).removeprefix("# ").split()
    assert " ".join(prose).split() == words

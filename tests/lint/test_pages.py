"""The page of each finding: its bad example has that finding and no other, its good one has none."""

import re
from pathlib import Path

import pytest

from tspec.explain import codes, explain
from tspec.lint import lint
from tspec.lint.registry import ALLOWANCES, RULES, known
from tspec.resolve import load

FENCE = re.compile(r"```tspec (bad|good)(?: (\S+))?\n(.*?)```", re.DOTALL)
NAMES = {rule.code: rule.name for rule in RULES} | dict(ALLOWANCES)
ROOM = Path(__file__).resolve().parents[2] / "tspec/lint"


def examples(code: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"bad": {}, "good": {}}
    for kind, name, text in FENCE.findall(explain(code)):
        found[kind][name or "example.tspec"] = text
    return found


def test_every_finding_has_a_page_and_every_page_a_finding() -> None:
    assert [code for code in codes() if code.startswith("TS04")] == sorted(known())
    assert len(RULES) >= 25


def test_every_file_is_listed() -> None:
    files = {path.stem for path in (ROOM / "rules").glob("*.py")} - {"__init__"}
    listed = {rule.check.__module__.rpartition(".")[2] for rule in RULES}
    assert files == listed
    assert len({rule.code for rule in RULES}) == len(RULES) == len(files)
    assert len(set(NAMES.values())) == len(NAMES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_file_begins_with_its_code(rule) -> None:
    text = (ROOM / "rules" / f"{rule.check.__module__.rpartition('.')[2]}.py").read_text()
    assert text.startswith(f'"""{rule.code}: ')


@pytest.mark.parametrize("code", known())
@pytest.mark.parametrize("kind", ["bad", "good"])
def test_the_examples_are_right(code: str, kind: str, tmp_path: Path) -> None:
    title, _, rest = explain(code).partition("\n")
    assert re.fullmatch(rf"# {code}: [a-z`].*[^.]", title)
    assert f"Its name is `{NAMES[code]}`; " in rest
    files = examples(code)[kind]
    assert files
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    loaded = load([tmp_path], project=tmp_path)
    assert not loaded.diagnostics
    assert {each.code for each in lint(loaded)} == ({code} if kind == "bad" else set())


@pytest.mark.parametrize("code", known())
def test_the_page_says_how_it_is_fixed(code: str, tmp_path: Path) -> None:
    for name, text in examples(code)["bad"].items():
        (tmp_path / name).write_text(text)
    fixes = {each.fix.safe for each in lint(load([tmp_path], project=tmp_path)) if each.fix}
    page = explain(code)
    if fixes == {True}:
        assert "`tspec lint --fix` fixes it" in page
    elif fixes == {False}:
        assert "`tspec lint --unsafe-fixes` fixes it" in page
    else:
        assert "it has no autofix" in page or "deletes what is empty" in page


def test_the_table_of_the_documentation_is_whole() -> None:
    page = (ROOM.parents[1] / "docs/lint.md").read_text()
    rows = re.findall(r"^\| (TS04\d\d) \| `(\S+)` \| (.*) \| (.*) \|$", page, re.MULTILINE)
    assert [(code, name) for code, name, _, _ in rows] == list(NAMES.items())
    for code, _, title, fixed in rows:
        text = " ".join(explain(code).split())
        assert text.startswith(f"# {code}: {title} ")
        said = re.search(r"`tspec lint (--fix|--unsafe-fixes)` (fixes|deletes)", text)
        assert fixed == (f"`{said[1]}`" if said else "")

"""Files of older editions: what becomes of them, and that nothing of them is lost."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from tests.syntax import trees
from tspec.resolve import load_text
from tspec.source import Source
from tspec.syntax import nodes
from tspec.syntax.comments import every_comment
from tspec.syntax.editions import EDITIONS, MIGRATIONS, upgrade
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse

FOLDER = Path(__file__).parents[1] / "cases" / "editions"
HEAD = "edition {year}\n\nmodule old\n\nuse std.torch\n\n"
OF_2025 = """invariant linear_layers_train {
  for m in modules(class: "torch.nn.Linear")
  for p in parameters
  each step
  when present(p.grad) and isinstance(p.module, ["torch.nn.Linear"])
  expect p.grad.norm > 0
}
"""


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.case")), ids=lambda path: path.stem)
def test_case(path, case_input, check_case):
    parsed = parse(Source(path.name, case_input(path)))
    upgraded = upgrade(parsed.file)
    text = format_file(upgraded.file)
    again = parse(Source(path.name, text))
    assert again.diagnostics == ()
    assert again.file == upgraded.file
    check_case(path, {"upgraded": text, "done": "\n".join(upgraded.done)})


def test_each_edition_but_the_first_says_what_it_changed():
    assert list(MIGRATIONS) == list(EDITIONS[1:])
    shown = "".join(path.read_text() for path in FOLDER.glob("*.case"))
    page = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
    for migrations in MIGRATIONS.values():
        assert [each.what for each in migrations if each.what not in shown] == []
        assert [each.what for each in migrations if each.what not in page] == []


@given(trees.files)
def test_nothing_is_lost_and_the_newest_stays(file):
    assert upgrade(file).file == file
    old = replace(file, edition=nodes.Edition(EDITIONS[0]))
    once = upgrade(old).file
    assert once.edition == nodes.Edition(EDITIONS[-1])
    assert upgrade(once).file is once
    assert sorted(c.text for c in every_comment(once)) == sorted(c.text for c in every_comment(old))
    text = format_file(once)
    assert parse(Source("a", text)).file == once


def test_an_old_file_is_loaded_as_it_would_be_upgraded():
    old = load_text(HEAD.format(year=2025) + OF_2025)
    assert [d.message for d in old.diagnostics] == []
    upgraded = format_file(upgrade(parse(Source("a", HEAD.format(year=2025) + OF_2025)).file).file)
    new = load_text(upgraded)
    assert old.program is not None
    assert new.program is not None
    assert old.program.rules == new.program.rules


def test_the_newest_edition_refuses_what_an_older_one_wrote():
    found = load_text(HEAD.format(year=2026) + OF_2025)
    assert {"TS0121", "TS0133"} <= {d.code for d in found.diagnostics}


def test_an_error_in_an_old_file_stands_where_it_is_written():
    text = HEAD.format(year=2025) + OF_2025.replace('nn.Linear")', 'nn.Linar")')
    [found] = load_text(text).diagnostics
    assert found.source.slice(found.span).startswith('"torch.nn.Linar')

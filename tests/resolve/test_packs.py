"""Which packs there are: those that ship, and a project's own."""

import json
from pathlib import Path

from typer.testing import CliRunner

from tspec import __version__
from tspec.cli.app import app
from tspec.resolve.packs import packs
from tspec.resources import shipped

RULE = """
invariant loss_is_positive {
  each step
  expect loss > 0
  else warn
}
"""


def test_what_ships_is_listed_with_its_version() -> None:
    found = {pack.name: pack for pack in packs()}
    assert {"std.health", "specs.health", "specs.essentials"} <= set(found)
    assert "std.torch" not in found
    assert {pack.version for pack in found.values()} == {__version__}
    assert found["specs.health"].rules == found["std.health"].rules >= 10
    assert found["specs.essentials"].rules > found["specs.health"].rules
    assert all(pack.about for pack in found.values())
    folders = {folder.name for folder in shipped("specs").iterdir() if folder.is_dir()}
    assert folders <= {pack.path.parent.name for pack in found.values()}


def test_own_packs_say_their_version(tmp_path: Path) -> None:
    head = '/// Ours. And more.\nmodule ours version "2.1"\n\nuse std.torch\n'
    (tmp_path / "ours.tspec").write_text(f"edition 2026\n\n{head}{RULE}")
    (tmp_path / "words.tspec").write_text("edition 2026\n\nmodule words\n")
    [pack] = packs([tmp_path])
    assert (pack.name, pack.version, pack.rules, pack.about) == ("ours", "2.1", 1, "Ours")
    result = CliRunner().invoke(app, ["packs", str(tmp_path)])
    assert result.stdout == "ours  2.1    1 rule   Ours\n"
    listed = CliRunner().invoke(app, ["packs", str(tmp_path), "--output-format", "json"])
    assert json.loads(listed.stdout)[0]["version"] == "2.1"


def test_no_purpose_is_cut_off_in_a_terminal_of_80_columns() -> None:
    lines = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["packs"]).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    shown = " ".join(" ".join(lines).split())
    for pack in packs():
        number = f"{pack.rules} rule{'s' if pack.rules != 1 else ''}"
        assert f"{pack.name} {pack.version} {number} {pack.about}" in shown

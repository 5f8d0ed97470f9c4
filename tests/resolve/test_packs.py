"""Which packs there are: those that ship, and a project's own."""

import json
import re
from pathlib import Path

import pytest
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


def test_explain_lists_the_rules_of_a_pack() -> None:
    """By module, each with its first sentence; the pack goes by the names that SPECS give it."""
    said = [
        CliRunner().invoke(app, ["explain", name]).output
        for name in ("specs.essentials", "specs/essentials", "essentials")
    ]
    assert len(set(said)) == 1
    shown, rules = said[0].splitlines(), packs()
    [pack] = [each for each in rules if each.name == "specs.essentials"]
    assert shown[0] == f"specs.essentials {__version__}"
    assert shown[1] == f"  module, {pack.rules} rules"
    place = shown.index("Rules of std.health")
    assert shown[place + 1 : place + 3] == ["  loss_is_finite", "    The loss is NaN or infinite."]
    assert sum(re.fullmatch(r"  \w+", line) is not None for line in shown) == pack.rules
    assert max(map(len, shown)) <= 80


def test_explain_lists_the_rules_of_a_module_and_of_an_own_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tspec.toml").write_text("")
    (tmp_path / "ours.tspec").write_text(f"edition 2026\n\n/// Ours.\nmodule our.checks\n{RULE}")
    monkeypatch.chdir(tmp_path)
    own = CliRunner().invoke(app, ["explain", "our.checks"])
    assert own.output.splitlines()[:2] == ["our.checks", "  module, 1 rule"]
    listed = CliRunner().invoke(app, ["explain", "std.moe", "--output-format", "json"])
    names = {rule["name"] for rule in json.loads(listed.output)["rules"]}
    assert "every_token_is_routed" in names
    assert CliRunner().invoke(app, ["explain", "std.nothing"]).exit_code == 2

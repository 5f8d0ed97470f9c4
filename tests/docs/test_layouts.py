"""What the page on layouts shows is what the command prints and what the functions return."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tspec.cli.app import app

PAGE = (Path(__file__).resolve().parents[2] / "docs/layouts.md").read_text()


def fenced(kind: str, number: int = 0) -> str:
    found = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found[number]


def test_the_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "cuts.tspec").write_text(fenced("tspec"))
    [line] = re.findall(r"^\$ tspec (layout .*)$", PAGE, re.MULTILINE)
    arguments = line.replace("cuts.tspec", str(tmp_path / "cuts.tspec")).split()
    assert CliRunner().invoke(app, arguments).stdout == fenced("text")


@pytest.mark.slow
def test_the_draft_is_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text(fenced("py"))
    [line] = re.findall(r"^`tspec (infer .*)` writes$", PAGE, re.MULTILINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        ended = CliRunner().invoke(app, line.split())
    assert ended.exit_code == 0, ended.output
    assert (tmp_path / "draft.tspec").read_text() == fenced("tspec", 1)


def test_the_functions_return_what_the_page_says() -> None:
    names: dict[str, object] = {"text": fenced("tspec")}
    exec(fenced("python"), names)
    said = re.findall(r"^(held\.\S+) +# (\(.*?\)|\w+\(.*\))(?:,|$)", fenced("python"), re.MULTILINE)
    assert len(said) == 3
    assert [repr(eval(code, names)) for code, _ in said] == [value for _, value in said]

"""What testing says, command by command: a case holds commands, then files; what is printed follows."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tspec.cli.app import app
from tspec.report.results import is_code

FOLDER = Path(__file__).parents[1] / "cases" / "testing"
CASES = sorted(FOLDER.glob("*.case"))
WIDTH = 80


def parts(text: str) -> tuple[list[list[str]], dict[str, str]]:
    """The commands of a case, and its files by name."""
    commands: list[list[str]] = []
    files: dict[str, str] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("$ tspec ") and not name:
            commands.append(shlex.split(line)[2:])
        elif line.startswith("--- "):
            name = line.removeprefix("--- ").strip()
            files[name] = ""
        elif name:
            files[name] += line
    return commands, files


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(
    path: Path,
    case_input: Callable[[Path], str],
    check_case: Callable[[Path, dict[str, str]], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    commands, files = parts(case_input(path))
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    said = {}
    for words in commands:
        done = CliRunner().invoke(app, [*words, "--no-config"], catch_exceptions=False)
        output = done.output.replace(str(tmp_path), "…")
        said[f"{shlex.join(words)} ({done.exit_code})"] = output or "\n"
        if "--output-format" not in words:
            assert [line for line in output.splitlines() if len(line) > WIDTH] == []
    check_case(path, said)


def test_every_code_is_in_a_case() -> None:
    pages = (Path(__file__).parents[2] / "tspec" / "codes").glob("TS06[0-4]?.md")
    shown = "".join(path.read_text(encoding="utf-8") for path in CASES)
    assert [page.stem for page in sorted(pages) if page.stem not in shown] == []
    assert is_code("TS0600")

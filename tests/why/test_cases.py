"""What `why` and `explain` say: a case holds commands, then `rules.tspec`; its tests are recorded as run-0, run-1, ..."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.testing.test_cases import WIDTH, parts
from tests.why.test_part import written
from tspec.cli.app import app
from tspec.resolve import load
from tspec.resolve.program.scripts import Script
from tspec.testing.play import play

FOLDER = Path(__file__).parents[1] / "cases" / "why"
CASES = sorted(FOLDER.glob("*.case"))


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
    program = load([Path("rules.tspec")], tests=True).program
    assert program is not None
    for number, test in enumerate(program.tests):
        assert isinstance(test.events, Script)
        written(play(test.events, program.vocabulary), Path(f"run-{number}"))
    said = {}
    for words in commands:
        done = CliRunner().invoke(app, [*words, "--no-config"], catch_exceptions=False)
        output = done.output.replace(str(tmp_path), "…")
        said[f"{shlex.join(words)} ({done.exit_code})"] = output or "\n"
        if "--output-format" not in words and done.exit_code != 2:
            prose = output.split("\nCode\n")[0]
            assert [line for line in prose.splitlines() if len(line) > WIDTH] == []
    check_case(path, said)

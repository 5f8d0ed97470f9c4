"""The tutorial's commands are run in their order, and print what the page says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/tutorial.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^`([^`\n]+\.tspec)`:\n\n```tspec\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A file that the reader writes: its path, and its text."""


def session() -> list[tuple[str, list[str]]]:
    """Each command with the lines that it is said to print."""
    commands: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(PAGE.read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            else:
                commands[-1][1].append(line)
    return commands


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the tutorial writes; empty before and after."""
    runs = ROOT / "runs/tutorial"
    shutil.rmtree(runs, ignore_errors=True)
    yield runs
    shutil.rmtree(runs, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_tutorial_does_what_it_says(folder: Path) -> None:
    statuses = {}
    written = dict(FILE.findall(PAGE.read_text()))
    assert written
    for command, said in session():
        words = shlex.split(command)
        assert words[0] == "tspec"
        for path in written.keys() & set(words):
            (ROOT / path).write_text(written[path])
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        statuses[command] = done.returncode
        assert "internal error" not in done.stderr, done.stderr
        assert_prints(done.stdout, said, command + "\n" + done.stderr)
    bugs = [status for command, status in statuses.items() if "--bug" in command]
    sound = [status for command, status in statuses.items() if "--bug" not in command]
    assert bugs == [0, 1]
    assert set(sound) == {0}
    assert (folder / "hooks.py").exists()


def assert_prints(output: str, said: list[str], what: str) -> None:
    """The lines that the page shows come in their order; `...` stands for any."""
    lines = iter(output.splitlines())
    for wanted in said:
        if wanted != "...":
            assert any(line == wanted for line in lines), (wanted, what, output)

"""The page on reviews: its patch is applied in a repository, and its commands print what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/review.md"
BLOCK = re.compile(r"^(`{3,})(\w+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
ENVIRONMENT = {
    **os.environ, "COLUMNS": "80", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b", "GIT_PAGER": "cat",
}  # fmt: skip


def blocks(language: str) -> list[str]:
    """The page's blocks of a language."""
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [text for _, of, text in found if of == language]


def ran(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program in a folder."""
    return subprocess.run(
        words, cwd=folder, env=ENVIRONMENT, input=text, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The page's rules on `main`, and its patch on `quieter`."""

    def git(*words: str, text: str = "") -> None:
        done = ran(tmp_path, "git", *words, text=text)
        assert done.returncode == 0, done.stderr

    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/health.tspec").write_text(blocks("tspec")[0], encoding="utf-8")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "Rules")
    git("checkout", "-q", "-b", "quieter")
    git("apply", "-", text=blocks("diff")[0])
    git("commit", "-q", "-a", "-m", "Tidy up")
    return tmp_path


@pytest.mark.slow
def test_the_page_prints_what_is_printed(repository: Path) -> None:
    shown = 0
    for block in blocks("console"):
        command, _, said = block.partition("\n")
        words = shlex.split(command.removeprefix("$ "))
        if words[0] != "tspec":
            continue
        shown += 1
        done = ran(repository, sys.executable, "-m", *words)
        assert done.stdout.rstrip("\n") == said.rstrip("\n"), done.stdout + done.stderr
        assert done.returncode == ("none" not in words)
    assert shown >= 2


@pytest.mark.slow
def test_git_takes_the_lines_that_the_page_gives(repository: Path) -> None:
    [attributes] = blocks("gitattributes")
    (repository / ".gitattributes").write_text(attributes, encoding="utf-8")
    [line] = [text for text in blocks("sh") if "git config" in text]
    words = shlex.split(line)
    assert words[:4] == ["git", "config", "diff.tspec.command", "tspec diff"]
    here = [*words[:3], f"{shlex.quote(sys.executable)} -m tspec diff"]
    assert ran(repository, *here).returncode == 0
    done = ran(repository, "git", "diff", "main", "quieter")
    assert done.returncode == 0, done.stderr
    assert "incomparable  project.health.replicas_agree" in done.stdout

"""The command: files, folders and packs, git revisions, git's own call; formats and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from tspec.cli.app import app

LIMITS = "edition 2026\n\nmodule project.limits\n\nlet most = 10\n"
RULES = """edition 2026

module project.health

use project.limits
use std.torch

invariant loss_is_small {
  each step
  expect loss < most
}

invariant gradients_are_finite {
  for p in parameters
  after backward
  when present(p.grad)
  expect finite(p.grad)
  else stop
}
"""
ENVIRONMENT = {
    **os.environ, "COLUMNS": "80", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b", "GIT_PAGER": "cat",
}  # fmt: skip


def ran(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder."""
    return subprocess.run(
        words,
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class Done(NamedTuple):
    """What the command printed and said."""

    returncode: int
    stdout: str
    stderr: str


def diff(folder: Path, *words: str) -> Done:
    """Run `tspec diff` in a folder, in this process."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner(env=ENVIRONMENT).invoke(app, ["diff", *words])
    finally:
        os.chdir(before)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def changes(folder: Path, *words: str) -> dict[str, str]:
    """Each rule that changed, and how."""
    done = diff(folder, "--output-format", "json", *words)
    return {each["rule"]: each["change"] for each in json.loads(done.stdout)}


def write(folder: Path, limits: str = LIMITS, rules: str = RULES) -> Path:
    """A project's files."""
    (folder / "rules").mkdir(parents=True, exist_ok=True)
    (folder / "rules/limits.tspec").write_text(limits)
    (folder / "rules/health.tspec").write_text(rules)
    return folder / "rules"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits: a limit is lowered in a module that a rule uses, and another rule loses its guard."""

    def git(*words: str) -> None:
        done = ran(tmp_path, "git", *words)
        assert done.returncode == 0, done.stderr

    git("init", "-q", "-b", "main")
    write(tmp_path)
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    git("checkout", "-q", "-b", "work")
    write(
        tmp_path,
        LIMITS.replace("10", "5"),
        RULES.replace("present(p.grad)", "present(p.grad) and loss > 1"),
    )
    git("commit", "-q", "-a", "-m", "two")
    return tmp_path


BOTH = {
    "project.health.loss_is_small": "tightened",
    "project.health.gradients_are_finite": "loosened",
}


def test_revisions_are_read_each_with_its_own_modules(repository: Path) -> None:
    assert changes(repository, "main..work") == BOTH
    assert changes(repository, "main...HEAD") == BOTH
    assert changes(repository, "main", "work") == BOTH
    assert changes(repository, "main..") == BOTH
    assert changes(repository, "HEAD") == {}


def test_a_revision_is_compared_with_what_lies_in_the_folder(repository: Path) -> None:
    write(repository, LIMITS.replace("10", "20"))
    assert changes(repository, "main") == {"project.health.loss_is_small": "loosened"}
    assert changes(repository, "main", "--", "rules/health.tspec") == {
        "project.health.loss_is_small": "loosened"
    }
    assert changes(repository / "rules", "main", "health.tspec") == {
        "project.health.loss_is_small": "loosened"
    }


def test_a_file_or_folder_of_a_revision(repository: Path) -> None:
    assert changes(repository, "main:rules", "rules") == BOTH
    assert changes(repository, "main:rules/health.tspec", "work:rules/health.tspec") == BOTH
    assert changes(repository / "rules", "main:./health.tspec", "health.tspec") == BOTH
    assert "no `nothing` in `main`" in diff(repository, "main:nothing", "rules").stderr


def test_files_and_folders(tmp_path: Path) -> None:
    old = write(tmp_path / "a")
    new = write(tmp_path / "b", LIMITS.replace("10", "5"))
    only = {"project.health.loss_is_small": "tightened"}
    assert changes(tmp_path, str(old), str(new)) == only
    assert changes(tmp_path, "a/rules/health.tspec", "b/rules/health.tspec") == only
    assert changes(tmp_path, "std.hygiene", "std.hygiene") == {}


def test_what_moved_with_its_module_is_hidden(tmp_path: Path) -> None:
    write(tmp_path / "a")
    new = write(tmp_path / "b", rules=RULES.replace("project.health", "project.vitals"))
    (new / "health.tspec").rename(new / "vitals.tspec")
    done = diff(tmp_path, "a/rules", "b/rules")
    assert done.stdout == "2 unchanged hidden\n"
    assert done.returncode == 0


def test_json_says_where_and_what(tmp_path: Path) -> None:
    write(tmp_path / "a")
    write(tmp_path / "b", LIMITS.replace("10", "5"))
    [found] = json.loads(diff(tmp_path, "a/rules", "b/rules", "--output-format", "json").stdout)
    assert {"rule", "change", "old", "new", "witness"} <= found.keys()
    assert (found["old"]["file"], found["old"]["line"]) == ("a/rules/health.tspec", 8)
    assert found["new"]["text"].startswith("invariant loss_is_small {\n  each step\n")
    assert found["witness"]["values"] == {"step": "1", "loss": "5.0"}
    assert (found["witness"]["old"], found["witness"]["new"]) == ("holds", "violated")
    assert found["witness"]["confirmed"] is True


def test_the_exit_code_says_whether_something_is_asked_no_longer(repository: Path) -> None:
    assert diff(repository, "main..work").returncode == 1
    assert diff(repository, "work..main", "--fail-on", "removed").returncode == 0
    assert diff(repository, "main..work", "--fail-on", "tightened").returncode == 1
    assert diff(repository, "main..work", "--fail-on", "none").returncode == 0
    assert diff(repository, "work..work").returncode == 0
    (repository / "rules/health.tspec").unlink()
    done = diff(repository, "main")
    assert done.returncode == 1
    assert "2 removed" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing_here",), "`nothing_here` is no revision"),
        (("main..nothing",), "no revision `nothing`"),
        (("main..work", "--fail-on", "losened"), "there is no kind of change `losened`"),
        (("main..work", "--", "elsewhere"), "no .tspec file in elsewhere"),
        (("rules/a.tspec", "rules/b.tspec"), "there is no file"),
    ],
)
def test_a_wrong_call_is_said(repository: Path, words: tuple[str, ...], said: str) -> None:
    done = diff(repository, *words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_outside_of_a_repository_git_is_quoted(tmp_path: Path) -> None:
    done = diff(tmp_path, "main..work")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_bad_spec_is_said_with_its_side(repository: Path) -> None:
    write(repository, rules=RULES.replace("loss < most", "los < most"))
    done = diff(repository, "main")
    assert done.returncode == 2
    assert "did you mean `loss`?" in done.stderr
    assert "1 error on the side `the folder`" in done.stderr
    assert "rules/health.tspec:10:10" in done.stderr


def test_files_that_were_bad_and_still_are_do_not_stand_in_the_way(repository: Path) -> None:
    for number in range(5):
        (repository / f"broken{number}.tspec").write_text("invariant {")
    for words in (("add", "-A"), ("commit", "-q", "-m", "three")):
        assert ran(repository, "git", *words).returncode == 0
    write(repository)
    done = diff(repository, "HEAD")
    assert done.returncode == 1
    left_out = "left out, with errors and the same on both sides: "
    assert f"{left_out}broken0.tspec, broken1.tspec, broken2.tspec and 2 more" in done.stderr
    assert "1 loosened, 1 tightened" in done.stdout


def driver(folder: Path) -> str:
    """A script that git can call."""
    script = folder / "driver.sh"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tspec diff "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_git_calls_it_as_its_driver(repository: Path) -> None:
    (repository / ".gitattributes").write_text("*.tspec diff=tspec\n")
    command = driver(repository)
    assert ran(repository, "git", "config", "diff.tspec.command", command).returncode == 0
    done = ran(repository, "git", "diff", "main", "work")
    assert done.returncode == 0, done.stderr
    assert "tspec diff rules/health.tspec" in done.stdout
    assert "loosened  project.health.gradients_are_finite" in done.stdout
    assert "a/rules/health.tspec:13 -> b/rules/health.tspec:13" in " ".join(done.stdout.split())


def test_git_calls_it_for_one_diff(repository: Path) -> None:
    (repository / "rules/more.tspec").write_text(RULES.replace("project.health", "project.more"))
    assert ran(repository, "git", "add", "-A").returncode == 0
    command = driver(repository)
    done = ran(repository, "git", "diff", "HEAD", "--", "rules", GIT_EXTERNAL_DIFF=command)
    assert done.returncode == 0, done.stderr
    assert "2 added" in done.stdout


def test_git_goes_on_after_a_file_that_is_bad(repository: Path) -> None:
    (repository / "rules/health.tspec").write_text("invariant {")
    done = ran(repository, "git", "diff", "main", GIT_EXTERNAL_DIFF=driver(repository))
    assert done.returncode == 0, done.stderr
    assert "error[" in done.stdout and "tspec diff rules/limits.tspec" in done.stdout

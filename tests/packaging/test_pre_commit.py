"""The hooks of `.pre-commit-hooks.yaml`, run by pre-commit itself in a repository of somebody's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
IDS = [hook["id"] for hook in HOOKS]
GOOD = """edition 2026

module checks

use std.torch

/// A loss below zero is a sign that it is computed wrongly.
invariant the_loss_is_positive {
  each step
  expect loss > 0
  else warn
}
"""
TEST = """
test "a negative loss is seen" {
  events {
    step 1 { loss = 1.0 }
    step 2 { loss = -1.0 }
  }
  violates the_loss_is_positive at step 2
}
"""
UGLY = GOOD.replace("  expect loss > 0", "  expect   loss>0")
FINDING = GOOD.replace("loss > 0", "loss > 0 or loss <= 0 or loss > 0")


class Repository:
    """A git repository in which hooks are run on all files."""

    def __init__(self, folder: Path, hooks: list[dict[str, Any]], repo: dict[str, Any]) -> None:
        self.folder = folder
        folder.mkdir()
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(folder.parent / "cache"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.invalid",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.invalid",
        }
        self.run("git", "init", "-q", ".")
        config = {"repos": [{**repo, "hooks": hooks}]}
        (folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True
        )

    def check(self, hook: str, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run one hook on files that are about to be committed."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.run("git", "add", "-A")
        return self.run(sys.executable, "-m", "pre_commit", "run", "--all-files", hook)


@pytest.fixture
def local(tmp_path: Path) -> Repository:
    """The hooks as they are, but by the tspec that is installed here: nothing is downloaded."""
    hooks = [{**hook, "language": "system"} for hook in HOOKS]
    return Repository(tmp_path / "repository", hooks, {"repo": "local"})


def test_the_hooks_are_valid(local: Repository) -> None:
    done = local.run(
        sys.executable, "-m", "pre_commit", "validate-manifest", f"{ROOT}/.pre-commit-hooks.yaml"
    )
    assert done.returncode == 0, done.stdout
    assert IDS == ["tspec-fmt", "tspec-lint", "tspec-test"]


def test_formatting_changes_what_is_committed(local: Repository) -> None:
    done = local.check("tspec-fmt", {"specs/a.tspec": UGLY, "b.txt": "no   spec"})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "files were modified by this hook" in done.stdout
    assert (local.folder / "specs" / "a.tspec").read_text() == GOOD
    assert local.check("tspec-fmt", {}).returncode == 0


def test_formatting_keeps_to_the_configuration(local: Repository) -> None:
    files = {"old/a.tspec": UGLY, "tspec.toml": '[fmt]\nexclude = ["old/"]\n'}
    done = local.check("tspec-fmt", files)
    assert done.returncode == 0, done.stdout
    assert (local.folder / "old" / "a.tspec").read_text() == UGLY


@pytest.mark.slow
def test_lint_stops_a_commit(local: Repository) -> None:
    done = local.check("tspec-lint", {"specs/a.tspec": FINDING})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "[TS04" in done.stdout
    done = local.check("tspec-lint", {"specs/a.tspec": GOOD})
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_tests_are_run(local: Repository) -> None:
    done = local.check("tspec-test", {"specs/a.tspec": GOOD + TEST})
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = TEST.replace("at step 2", "at step 1")
    done = local.check("tspec-test", {"specs/a.tspec": GOOD + wrong})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "a negative loss is seen" in done.stdout


def test_files_of_no_concern_run_nothing(local: Repository) -> None:
    for hook in IDS:
        done = local.check(hook, {"b.txt": "x", "README.md": "y"})
        assert "no files to check" in done.stdout


@pytest.mark.slow
def test_the_hooks_of_a_clone_build_their_own_environment(tmp_path: Path) -> None:
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    repository = Repository(
        tmp_path / "repository",
        [{"id": "tspec-fmt"}, {"id": "tspec-lint"}],
        {"repo": str(ROOT), "rev": revision},
    )
    done = repository.check("tspec-fmt", {"specs/a.tspec": UGLY})
    assert "files were modified by this hook" in done.stdout, done.stdout + done.stderr
    assert (repository.folder / "specs" / "a.tspec").read_text() == GOOD
    assert repository.check("tspec-lint", {}).returncode == 0

"""`tspec diff` reads a repository that means harm: it writes nothing elsewhere and runs none of its code."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tspec.cli.app import app

SPEC = b"edition 2026\n\nuse std.torch\n\ninvariant loss_is_small {\n  each step\n  expect loss < 10\n}\n"
ENVIRONMENT = {
    **os.environ, "COLUMNS": "80", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}  # fmt: skip
FILE, FOLDER, LINK = "100644", "40000", "120000"


def git(folder: Path, *words: str, stdin: bytes = b"") -> str:
    """Run git in a folder; what it printed."""
    done = subprocess.run(
        ["git", *words], cwd=folder, env=ENVIRONMENT, input=stdin, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def tree(folder: Path, *entries: tuple[str, str, str]) -> str:
    """A tree with these entries (mode, name, object), which git itself would refuse to make."""
    content = b"".join(
        f"{mode} {name}\0".encode() + bytes.fromhex(what) for mode, name, what in entries
    )
    return git(folder, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=content)


def diff(folder: Path, *words: str) -> tuple[int, str]:
    """Run `tspec diff` in a folder: its exit status, and all that it printed."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner(env=ENVIRONMENT).invoke(app, ["diff", *words])
    finally:
        os.chdir(before)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A commit with one spec, in a folder below that of the test, as temporary folders are."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.tspec").write_bytes(SPEC)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def committed(folder: Path, *entries: tuple[str, str, str]) -> None:
    """A branch `hostile` with a tree of these entries."""
    commit = git(folder, "commit-tree", tree(folder, *entries), "-m", "two")
    git(folder, "update-ref", "refs/heads/hostile", commit)


@pytest.mark.parametrize(
    ("folders", "name", "mode", "said"),
    [
        (("..",), "escaped.tspec", FILE, "leads out of the repository"),
        (("a", "..", ".."), "escaped.tspec", FILE, "leads out of the repository"),
        ((".git",), "x.tspec", FILE, "lies in a `.git`"),
        (("a", ".GIT"), "x.tspec", FILE, "lies in a `.git`"),
        ((".",), "x.tspec", FILE, "is no plain path"),
        ((), "..\\x.tspec", FILE, "is no plain path"),
        ((), "/tmp/x.tspec", FILE, "leads out of the repository"),
        ((), "../../escaped.tspec", FILE, "leads out of the repository"),
        ((), "x.tspec", LINK, "is a symbolic link"),
    ],
)
def test_a_path_that_leaves_the_tree_is_refused(
    repository: Path, folders: Sequence[str], name: str, mode: str, said: str
) -> None:
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=SPEC)
    entry = (mode, name, blob)
    for folder in reversed(folders):
        entry = (FOLDER, folder, tree(repository, entry))
    committed(repository, entry)
    for words in (("main..hostile",), ("hostile",), ("hostile:a.tspec", "a.tspec")):
        code, output = diff(repository, *words)
        assert code == 2
        assert "`hostile` is not read: its path `" in output
        assert said in output
    assert not list(repository.parent.rglob("escaped.tspec"))


def test_a_path_that_occurs_twice_is_refused(repository: Path) -> None:
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=SPEC)
    committed(repository, (FILE, "x.tspec", blob), (FILE, "x.tspec", blob))
    assert diff(repository, "hostile") == (
        2, "tspec: `hostile` is not read: its path `x.tspec` occurs twice\n",
    )  # fmt: skip
    inner = tree(repository, (FILE, "y.tspec", blob))
    committed(repository, (FILE, "x.tspec", blob), (FOLDER, "x.tspec", inner))
    assert diff(repository, "hostile") == (
        2, "tspec: `hostile` is not read: a folder of `x.tspec/y.tspec` is a file too\n",
    )  # fmt: skip


@pytest.mark.parametrize("path", ["../outside.tspec", "b/../../outside.tspec", "{}/outside.tspec"])
def test_a_path_of_a_revision_lies_in_it(repository: Path, path: str) -> None:
    (repository.parent / "outside.tspec").write_bytes(SPEC)
    code, output = diff(repository, f"main:{path.format(repository.parent)}", "a.tspec")
    assert code == 2
    assert "lies outside of the repository" in output


def test_no_code_of_the_repository_is_run(repository: Path) -> None:
    marker = repository.parent / "ran"
    script = repository / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    script.chmod(0o755)
    hooks = repository / "hooks"
    hooks.mkdir()
    for name in (
        "post-index-change",
        "post-checkout",
        "reference-transaction",
        "fsmonitor-watchman",
    ):
        (hooks / name).write_bytes(script.read_bytes())
        (hooks / name).chmod(0o755)
    (repository / ".gitattributes").write_text("*.tspec diff=evil filter=evil merge=evil\n")
    settings = (
        "core.pager", "core.fsmonitor", "core.sshCommand", "core.editor", "diff.evil.textconv",
        "diff.evil.command", "diff.external", "filter.evil.smudge", "filter.evil.clean",
        "pager.ls-tree", "pager.rev-parse", "alias.ls-tree",
    )  # fmt: skip
    for setting in settings:
        git(repository, "config", setting, str(script))
    git(repository, "config", "core.hooksPath", str(hooks))
    assert diff(repository, "main")[0] == 0
    assert diff(repository, "main", "main")[0] == 0
    assert diff(repository, "main...main")[0] == 0
    assert diff(repository, "main:a.tspec", "a.tspec")[0] == 0
    assert not marker.exists()


def test_a_missing_object_is_not_fetched(repository: Path) -> None:
    marker = repository.parent / "ran"
    script = repository.parent / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    script.chmod(0o755)
    other = repository.parent / "other"
    git(repository.parent, "clone", "-q", "--no-local", str(repository), str(other))
    for name, value in (
        ("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"), ("remote.origin.uploadpack", str(script)),
        ("protocol.allow", "always"),
    ):  # fmt: skip
        git(other, "config", name, value)
    missing = "1" * 40
    commit = git(other, "commit-tree", tree(other, (FILE, "x.tspec", missing)), "-m", "two")
    git(other, "update-ref", "refs/heads/hostile", commit)
    code, output = diff(other, "hostile")
    assert code == 2
    assert "`x.tspec` of `hostile` is missing from this clone" in output
    assert not marker.exists()


@pytest.mark.parametrize("word", ["--output=x", "-h", "--exec-path"])
def test_a_revision_is_never_an_option_of_git(repository: Path, word: str) -> None:
    code, output = diff(repository, "--", word, "main")
    assert code == 2
    assert f"there is no file, folder, module or pack `{word}`" in output or "no revision" in output
    code, output = diff(repository, "--", f"{word}..main")
    assert code == 2
    assert f"no revision `{word}`" in output

"""The specs of a git revision, read with git itself.

git is only asked to read objects. Everything that a repository's configuration could make it run is
turned off: pagers, hooks, file monitors, and fetching of missing objects.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

_LINK = "120000"
"""The mode of a symbolic link in a tree."""

_GIT = (
    "git", "--no-pager", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}",
    "-c", "safe.bareRepository=explicit",
)  # fmt: skip
_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_OPTIONAL_LOCKS": "0"}
"""A partial clone fetches objects with commands that its configuration names. No protocol is
called `none`, so a git that does not know the first of these variables fetches nothing either."""


class NoRevision(Exception):
    """A revision cannot be read, or there is no repository. The words say why."""


def _git(*arguments: str, stdin: bytes | None = None) -> bytes:
    try:
        done = subprocess.run(
            [*_GIT, *arguments],
            env={**os.environ, **_ENVIRONMENT},
            input=stdin,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise NoRevision("git is not installed") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise NoRevision(said or f"git {arguments[0]} failed")
    return done.stdout


def repository() -> Path:
    """The folder at the top of the repository. Raises NoRevision."""
    return Path(os.fsdecode(_git("rev-parse", "--show-toplevel").removesuffix(b"\n")))


def commit_of(revision: str) -> str | None:
    """The commit that a name stands for, or None if it stands for none."""
    name = f"{revision}^{{commit}}"
    try:
        found = _git("rev-parse", "--verify", "--quiet", "--end-of-options", name)
    except NoRevision:
        return None
    return found.decode().strip()


def merge_base(first: str, second: str) -> str:
    """The commit at which two branches parted, as `A...B` means. Raises NoRevision."""
    return _git("merge-base", "--end-of-options", first, second).decode().strip()


def specs_of(revision: str) -> Mapping[str, bytes]:
    """Spec files of a revision by their paths.

    Raises NoRevision, also for a tree with a path that is no plain path below its top: git makes
    no such tree, but reads one.
    """
    listed = _git("ls-tree", "-r", "-z", "--full-tree", revision)
    wanted: dict[str, str] = {}
    for entry in listed.split(b"\0"):
        head, _, name = entry.partition(b"\t")
        path = os.fsdecode(name)
        mode, kind, blob = head.decode().split(" ") if path.endswith(".tspec") else ("", "", "")
        if kind != "blob":
            continue
        problem = "occurs twice" if path in wanted else _unsafe(path, mode)
        if problem:
            raise NoRevision(f"`{revision}` is not read: its path `{path}` {problem}")
        wanted[path] = blob
    for path in wanted:
        if any(str(folder) in wanted for folder in PurePosixPath(path).parents):
            raise NoRevision(f"`{revision}` is not read: a folder of `{path}` is a file too")
    if not wanted:
        return {}
    names = "".join(f"{blob}\n" for blob in wanted.values()).encode()
    return dict(_contents(_git("cat-file", "--batch", stdin=names), wanted, revision))


def _unsafe(path: str, mode: str) -> str:
    """Why a path of a tree is not written to a folder, or nothing."""
    parts = path.split("/")
    if path.startswith("/") or ".." in parts:
        return "leads out of the repository"
    if "" in parts or "." in parts or "\\" in path:
        return "is no plain path"
    if any(part.lower() == ".git" for part in parts):
        return "lies in a `.git`"
    if mode == _LINK:
        return "is a symbolic link; commit the file that it leads to"
    return ""


def _contents(
    batch: bytes, wanted: Mapping[str, str], revision: str
) -> Iterator[tuple[str, bytes]]:
    """The objects that `git cat-file --batch` prints, each after a line with its size, by path."""
    place = 0
    for path in wanted:
        end = batch.index(b"\n", place)
        head = batch[place:end].split(b" ")
        if head[1] != b"blob":
            raise NoRevision(
                f"`{path}` of `{revision}` is missing from this clone: fetch the revision with "
                "`git fetch --refetch --no-filter` first"
            )
        size = int(head[2])
        yield path, batch[end + 1 : end + 1 + size]
        place = end + 1 + size + 1


@contextmanager
def laid_out(files: Mapping[str, bytes]) -> Iterator[Path]:
    """The files in a folder of their own, for as long as it takes. Paths are as `specs_of` gives them."""
    with tempfile.TemporaryDirectory(prefix="tspec-diff-") as name:
        folder = Path(name).resolve()
        for path, content in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        yield folder

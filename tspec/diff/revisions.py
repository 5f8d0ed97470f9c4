"""The specs of a git revision, read with git itself."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MARKS = ("tspec.toml", "pyproject.toml")
"""Read too, since they mark a project and hold its settings."""


class NoRevision(Exception):
    """What git says of a revision that it cannot read, or that there is no repository."""


def _git(*arguments: str, folder: Path | None = None, stdin: bytes | None = None) -> bytes:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, input=stdin, capture_output=True, check=False
        )
    except FileNotFoundError:
        raise NoRevision("git is not installed") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise NoRevision(said or f"git {arguments[0]} failed")
    return done.stdout


def repository() -> Path:
    """The folder at the top of the repository. Raises NoRevision."""
    return Path(_git("rev-parse", "--show-toplevel").decode().strip())


def commit_of(revision: str) -> str | None:
    """The commit that a name stands for, or None if it stands for none."""
    if revision.startswith("-"):
        return None
    try:
        found = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except NoRevision:
        return None
    return found.decode().strip()


def merge_base(first: str, second: str) -> str:
    """The commit at which two lines parted, as `A...B` means. Raises NoRevision."""
    return _git("merge-base", first, second).decode().strip()


def specs_of(revision: str, top: Path) -> Mapping[str, bytes]:
    """Spec files of a revision, and what marks a project, by their paths. Raises NoRevision."""
    listed = _git("ls-tree", "-r", "-z", "--full-tree", revision, folder=top)
    wanted = []
    for entry in listed.decode(errors="surrogateescape").split("\0"):
        head, _, path = entry.partition("\t")
        if head.split(" ")[1:2] == ["blob"] and (
            path.endswith(".tspec") or path.rpartition("/")[2] in MARKS
        ):
            wanted.append((path, head.split(" ")[2]))
    if not wanted:
        return {}
    names = "".join(f"{blob}\n" for _, blob in wanted).encode()
    texts = _contents(_git("cat-file", "--batch", folder=top, stdin=names))
    return dict(zip((path for path, _ in wanted), texts, strict=True))


def _contents(batch: bytes) -> Iterator[bytes]:
    """The objects that `git cat-file --batch` prints, each after a line with its size."""
    place = 0
    while place < len(batch):
        end = batch.index(b"\n", place)
        size = int(batch[place:end].split(b" ")[2])
        yield batch[end + 1 : end + 1 + size]
        place = end + 1 + size + 1


@contextmanager
def laid_out(files: Mapping[str, bytes]) -> Iterator[Path]:
    """The files in a folder of their own, for as long as it takes."""
    with tempfile.TemporaryDirectory(prefix="tspec-diff-") as name:
        folder = Path(name).resolve()
        for path, content in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        yield folder

"""The user's own folder for files that the processes of a job leave for one another.

Hooks in it are executed and arguments in it are trusted, so no other user may write to it. It is
never in a shared temporary directory, and it is refused if another user could have put a file into
it. A locked file shows that its process lives; the lock ends with the process, however that ends.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

NAME = "tspec"


def own_folder(*names: str) -> Path:
    """A folder that this user owns and nobody else may enter. It is created if it does not exist.

    It lies in the cache folder (XDG_CACHE_HOME, else ~/.cache), which outlasts a login, and in XDG_RUNTIME_DIR
    where no cache folder can be written. Raises OSError if it is a link, another user's, or open to others.
    """
    folder = private(_base() / NAME)
    for name in names:
        folder = private(folder / name)
    return folder


def private(folder: Path) -> Path:
    """A folder, made with mode 0700 or checked to be so. Raises OSError if it is not the user's alone."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise _refused(folder, "is a symbolic link")
    if not stat.S_ISDIR(found.st_mode):
        raise _refused(folder, "is not a folder")
    if found.st_uid != os.geteuid():
        raise _refused(folder, f"belongs to user {found.st_uid}, not to {os.geteuid()}")
    if found.st_mode & 0o077:
        raise _refused(folder, f"is open to other users (mode {stat.S_IMODE(found.st_mode):04o})")
    return folder


def _refused(folder: Path, why: str) -> OSError:
    advice = "tspec runs code from it; remove it, or set XDG_CACHE_HOME to a folder of your own"
    return PermissionError(errno.EPERM, f"{why}: {advice}", str(folder))


def _base() -> Path:
    home = Path(os.environ.get("HOME") or Path.home())
    places = [Path(os.environ.get("XDG_CACHE_HOME", "")), home / ".cache"]
    places.append(Path(os.environ.get("XDG_RUNTIME_DIR", "")))
    problem: OSError | None = None
    for place in places:
        if not place.is_absolute():
            continue
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as found:
            problem = problem or found
            continue
        if os.access(place, os.W_OK | os.X_OK):
            return place
        problem = problem or PermissionError(errno.EACCES, "cannot be written", str(place))
    raise problem or FileNotFoundError(errno.ENOENT, "no cache folder: set XDG_CACHE_HOME")


def write_json(path: Path, value: Any) -> None:
    """Write a value so that a reader sees all of it or none."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(json.dumps(value), encoding="utf-8")
    scratch.replace(path)


def locked(path: Path) -> IO[str]:
    """Open a file, made if it is not there, and lock it for as long as it stays open in this process."""
    file = path.open("a", encoding="utf-8")
    with suppress(OSError):  # a file system without locks: no process is known to live
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def is_held(path: Path) -> bool:
    """True if another process keeps a file locked. If this process holds the lock, the call
    releases it.
    """
    try:
        with path.open("r+", encoding="utf-8") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError as problem:
        return problem.errno in (errno.EACCES, errno.EAGAIN)
    return False


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Within the block no other process is in such a block on the same folder."""
    with (folder / "lock").open("a", encoding="utf-8") as file:
        with suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_EX)
        yield


@contextmanager
def argument_file(value: Any) -> Iterator[Path]:
    """A value as a JSON file for the processes that this one starts, for as long as the block runs.

    A process that was killed leaves its file; the next one to come here removes it.
    """
    folder, pid = own_folder("arguments"), os.getpid()
    with alone(folder):
        for left in folder.glob("*.json"):
            if not left.name.startswith(f"{pid}-") and not is_held(left):
                left.unlink(missing_ok=True)
        handle, name = tempfile.mkstemp(prefix=f"{pid}-", suffix=".json", dir=folder)
        os.close(handle)
        path = Path(name)
        file = locked(path)
    try:
        file.write(json.dumps(value))
        file.flush()
        yield path
    finally:
        if os.getpid() == pid:  # not in a fork that comes here
            path.unlink(missing_ok=True)
        file.close()

"""Notes to a person, each once: of the processes of a job that share a folder, the first one says it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from tspec.runtime.messages.folders import alone, own_folder, private
from tspec.runtime.messages.launch import host, launched, launcher_lives
from tspec.runtime.messages.say import warn


class SharedNotes:
    """Notes shared by the processes that use `folder`.

    Each logged note leaves an empty file there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def warn(self, message: str) -> None:
        """Log a note, unless another process has done so. If the folder is missing, every note is
        logged.
        """
        name = hashlib.sha256(message.encode(errors="surrogatepass")).hexdigest()[:24]
        try:
            (self._folder / f"{name}.note").touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            return
        except OSError:
            pass
        warn(message)


def rank_notes() -> Callable[[str], None]:
    """The function by which a process logs notes. Under a launcher, a note that several ranks have
    is logged by the first of them.

    The ranks on a machine share a folder of the user's own; a later job removes it when the
    launcher is gone.
    """
    try:
        launch = launched()
        if not launch.job:
            return warn
        notes = own_folder("notes")
        with alone(notes):
            for left in notes.glob(f"{host()}+*"):
                if not launcher_lives(left.name):
                    shutil.rmtree(left, ignore_errors=True)
            return SharedNotes(private(notes / launch.job)).warn
    except (OSError, ValueError):  # without a folder each rank says its own
        return warn

"""Notes to a person, each once: of the processes of a job that share a folder, the first one says it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tspec.runtime.say import warn


class SharedNotes:
    """The notes of the processes that share `folder`, in which each note that was said leaves an empty file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def warn(self, message: str) -> None:
        """Log a note, unless another process has. A folder that is gone keeps no note back."""
        name = hashlib.sha256(message.encode(errors="surrogatepass")).hexdigest()[:24]
        try:
            (self._folder / f"{name}.note").touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            return
        except OSError:
            pass
        warn(message)

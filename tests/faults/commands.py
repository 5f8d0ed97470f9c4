"""`tspec ARGUMENTS` in this process, as its `main` runs it, and whether it kept to its promises."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from unittest import mock

from tspec.cli.app import main


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def problem(self) -> str | None:
        """What is wrong with the way in which it ended, whatever it was given; None if nothing is."""
        if "internal error" in self.err or "Traceback" in self.err:
            return self.err
        if self.status not in (0, 1, 2):
            return f"exit status {self.status}\n{self.err}"
        if self.status == 2 and not self.err.strip():
            return "exit status 2, and nothing on standard error"
        return None


def tspec(*arguments: object) -> RunResult:
    """Run a command to its end."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["tspec", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
            status = code if isinstance(code, int) else 0 if code is None else 1
        else:
            status = 0
    return RunResult(status, out.getvalue(), err.getvalue())

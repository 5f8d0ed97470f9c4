"""Deciding rules offline, over a recorded trace."""

from __future__ import annotations

from pathlib import Path

from tspec.check.verdicts import Verdicts
from tspec.resolve.rules import Program


def check(program: Program, trace: Path | str) -> Verdicts:
    """The verdict of every instance of a program's rules in a recording. Raises TraceError if it is none."""
    # duckdb and pyarrow take half a second, which those who only want a verdict's type need not pay.
    from tspec.check.columnar import check as columnar

    return columnar(program.rules, trace)

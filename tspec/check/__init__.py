"""Deciding rules offline, over a recorded trace."""

from __future__ import annotations

from pathlib import Path

from tspec.check.verdicts import Verdicts
from tspec.resolve.program.rules import Program


def check(program: Program, trace: Path | str) -> Verdicts:
    """Check a recording for a report: all instances of violated rules, and the counts of verdicts
    of the other rules.

    Raises TraceError if there is no recording.
    """
    # duckdb and pyarrow take half a second to import. Code that only needs a verdict's type does
    # without them.
    from tspec.check.columnar import check as columnar

    return columnar(program.rules, trace, findings_only=True)

"""The page on equivalence: its files are written, and its commands print what it says, but for the numbers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/equivalence.md").read_text(encoding="utf-8")
PATIENCE = 400
"""Seconds; the machine may be busy."""


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def shape(text: str) -> list[str]:
    """The lines without their measured numbers; lines of the table in any order."""
    lines = re.sub(r"\b[\d.]+e[-+]\d+\b|\b0\.\d+\b", "N", text).splitlines()
    heads = [line for line in lines if not line.lstrip().startswith("N ")]
    return heads + sorted(" ".join(line.split()) for line in lines if line not in heads)


@pytest.mark.slow
@pytest.mark.gloo
def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    [script], [spec, *_] = blocks("python"), blocks("tspec")
    (tmp_path / "mlp.py").write_text(script)
    (tmp_path / "mlp.tspec").write_text(spec)
    sessions = [each for each in blocks("console") if "--print-commands" not in each]
    assert len(sessions) == len(blocks("console")) - 1 == 4  # test_family runs that one
    for session in sessions:
        command, _, said = session.partition("\n")
        words = command.removeprefix("$ tspec ").split()
        done = subprocess.run(
            [sys.executable, "-m", "tspec", *words],
            cwd=ROOT if "tests/" in command else tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == ("first wrong" in said), done.stderr
        assert shape(done.stdout) == shape(said)


def test_rows_of_jobs_are_what_is_to_be_found() -> None:
    from tests.equivalence.jobs import JOBS  # it imports what jobs do, which takes seconds

    known = {job.name: job for job in JOBS}
    rows = [
        row for text in blocks("text") for row in re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    ]
    said = [row.split(": ", 1) for row in rows if row.split(": ", 1)[0] in known]
    assert {known[name].script for name, _ in said} >= {"context_parallel", "engines", "pipelined"}
    wrong = [name for name, found in said if not known[name].is_found(found)]
    assert wrong == []

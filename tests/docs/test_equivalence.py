"""The page on equivalence: its files are written, and its commands print what it says, but for the numbers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.families import family

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


SESSIONS = {
    each.partition("\n")[0].removeprefix("$ tspec "): each
    for each in blocks("console")
    if "--print-commands" not in each  # test_family runs that one
}
OF_THE_PAGE = {command for command in SESSIONS if command.startswith("run mlp.tspec ")}
"""The commands whose script stands on the page; the others run jobs of `tests/equivalence`."""


@pytest.mark.gloo
@pytest.mark.parametrize(
    "command", family(SESSIONS, {each for each in OF_THE_PAGE if "--no-sum" in each})
)
def test_a_command_prints_what_the_page_shows(command: str, tmp_path: Path) -> None:
    [script], [spec, *_], said = blocks("python"), blocks("tspec"), SESSIONS[command]
    (tmp_path / "mlp.py").write_text(script)
    (tmp_path / "mlp.tspec").write_text(spec)
    done = subprocess.run(
        [sys.executable, "-m", "tspec", *command.split()],
        cwd=tmp_path if command in OF_THE_PAGE else ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == ("first wrong" in said), done.stderr
    assert shape(done.stdout) == shape(said.partition("\n")[2])


def test_all_commands_of_the_page_are_run() -> None:
    assert len(SESSIONS) == len(blocks("console")) - 1 == 4
    assert len(OF_THE_PAGE) == 2


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

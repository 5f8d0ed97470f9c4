"""Diagnostics of a job: on standard error, or where the job's own logging sends them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.training import module, train
from tspec.runtime.live.follow import SITE
from tspec.runtime.messages.say import warn


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname, record.getMessage()))


@pytest.fixture
def handler() -> Iterator[Kept]:
    kept, logger = Kept(), logging.getLogger("tspec")
    logger.addHandler(kept)
    yield kept
    logger.removeHandler(kept)


def test_without_a_handler_a_diagnostic_is_on_standard_error(capsys):
    warn("100% of a.b\nis lost")
    assert capsys.readouterr().err == "tspec: 100% of a.b\\nis lost\n"


def test_a_diagnostic_is_as_wide_as_the_terminal_and_one_line_in_a_log(capsys, monkeypatch):
    said = " ".join(["decoder.layers.0.self_attention"] * 4)
    warn(said)
    assert capsys.readouterr().err == f"tspec: {said}\n"
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    warn(said)
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 80 and lines[1].startswith("  decoder")
    assert " ".join(" ".join(lines).split()) == f"tspec: {said}"


def test_a_handler_of_the_job_gets_it_instead(handler, capsys):
    warn("100% is lost")
    assert handler.lines == [("WARNING", "100% is lost")]
    assert capsys.readouterr().err == ""


def test_it_is_not_lost_where_the_job_disables_loggers(handler, capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger("tspec"), "disabled", True)
    warn("100% is lost")
    assert handler.lines == []
    assert capsys.readouterr().err == "tspec: 100% is lost\n"


def test_a_fault_of_a_rule_is_a_diagnostic_and_a_finding_is_output(handler, capsys, monkeypatch):
    hooks = module(
        "before optimizer.step\nexpect norm(parameters.grad) < 100\nelse warn",
        "after optimizer.step\nexpect loss < 0\nelse warn",
    )

    def broken(rule: object, window: object) -> None:
        raise ZeroDivisionError("made for the test")

    name = next(name for name in vars(hooks) if name.startswith("r0_"))
    monkeypatch.setitem(vars(hooks), name, broken)
    train(hooks)
    shown = capsys.readouterr().err
    assert [level for level, _ in handler.lines] == ["WARNING"]
    assert "is switched off" in handler.lines[0][1] and "is switched off" not in shown
    assert "tspec: step 1 rank 0: t.r1" in shown


@pytest.mark.parametrize("handled", [False, True])
def test_a_process_that_cannot_be_followed_says_so(tmp_path: Path, handled: bool) -> None:
    """The child of a job, of which the module that follows it is gone."""
    (tmp_path / "torch.py").write_text("")
    site = SITE
    script = (
        "import logging, sys\n"
        + handled * "logging.getLogger('tspec').addHandler(logging.StreamHandler(sys.stdout))\n"
        + "import torch"
    )
    follow = json.dumps([{"module": "no_such_module", "function": "join", "argument": ""}])
    path = os.pathsep.join([str(site), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path, "TSPEC_FOLLOW": follow},
        capture_output=True,
        text=True,
        check=True,
    )
    told, other = (done.stdout, done.stderr) if handled else (done.stderr, done.stdout)
    assert "is not followed: \"No module named 'no_such_module'\"" in told
    assert told.startswith("process" if handled else "tspec: process")
    assert "followed" not in other

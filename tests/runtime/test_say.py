"""Diagnostics of a job: on standard error, or where the job's own logging sends them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tspec.runtime.say import warn


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


def test_a_handler_of_the_job_gets_it_instead(handler, capsys):
    warn("100% is lost")
    assert handler.lines == [("WARNING", "100% is lost")]
    assert capsys.readouterr().err == ""


def test_it_is_not_lost_where_the_job_disables_loggers(handler, capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger("tspec"), "disabled", True)
    warn("100% is lost")
    assert handler.lines == []
    assert capsys.readouterr().err == "tspec: 100% is lost\n"

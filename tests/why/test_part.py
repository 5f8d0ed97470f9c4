"""A rule decides alike on the part of a recording that it reads and on the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.jobs import job
from tests.check.strategies import case, loaded, spec
from tspec.check.interpret import interpret
from tspec.check.verdicts import Verdicts
from tspec.trace.meta import write_meta
from tspec.trace.model import Trace
from tspec.trace.read import read_trace
from tspec.trace.write import TraceWriter
from tspec.why.recording import part_for


def written(trace: Trace, folder: Path) -> Path:
    """The trace as a recording on disk."""
    folder.mkdir()
    write_meta(folder, trace.world)
    for stream in trace.streams:
        with TraceWriter(folder, stream.rank, stream.worker) as writer:
            writer.add_all(stream.records)
    return folder


def table(found: Verdicts) -> dict[object, object]:
    return {each.instance: (each.verdict, each.reason, each.step) for each in found.decided}


@pytest.mark.parametrize("number", range(60))
def test_the_part_decides_as_the_whole(number: int, tmp_path: Path) -> None:
    body, shape = case(number)
    (rule,) = loaded(spec([body]))
    folder = written(job(shape), tmp_path / "run")
    part = part_for(rule, folder)
    whole = read_trace(folder)
    assert table(interpret([rule], part)) == table(interpret([rule], whole)), body
    for less, more in zip(
        part.streams, [s for s in whole.streams if s.worker is None], strict=True
    ):
        assert len(less.records) <= len(more.records)

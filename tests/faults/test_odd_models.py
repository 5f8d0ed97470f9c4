"""Whatever the objects of a job answer: training is the same to the bit, rules stay on, the recording is whole."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.families import family
from tests.faults.odd_models import BEGINS, CASES
from tests.record.processes import ROOT, environment
from tspec.trace.model import Finish
from tspec.trace.read import read_trace

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("odd models")]
SCRIPT = Path(__file__).with_name("odd_models.py")
SPEC = SCRIPT.with_suffix(".tspec")
PATIENCE = 1200
"""Seconds for all cases in one process; the machine may be busy."""
FAULTS = re.compile(r"tspec: .*(internal error|switched off|recording stopped).*")


@dataclass
class RunResult:
    """What the cases trained, with what was said to each, and the recording."""

    status: int
    trained: dict[str, Any]
    said: dict[str, str]
    printed: str
    recording: Path


def run(out: Path, names: Sequence[str], *head: str | Path) -> RunResult:
    done = subprocess.run(
        [sys.executable, *map(str, head), str(SCRIPT), str(out), *names],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert out.exists(), done.stderr
    parts = [part.partition("\n") for part in done.stderr.split(BEGINS)[1:]]
    said = {name: text for name, _, text in parts}
    return RunResult(done.returncode, torch.load(out), said, done.stdout, out.with_suffix(".trace"))


@pytest.fixture(scope="module")
def names(request: pytest.FixtureRequest) -> list[str]:
    """The cases whose tests were chosen, so that a sample of the tests runs these only; all if none was."""
    tests = [item for item in request.session.items if item.path == request.path]
    chosen = {item.callspec.params["name"] for item in tests if hasattr(item, "callspec")}
    return [name for name in CASES if name in chosen] or [*CASES]


@pytest.fixture(scope="module")
def plain(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return run(tmp_path_factory.mktemp("plain") / "out", names)


@pytest.fixture(scope="module")
def watched(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """Rules are checked and the run is recorded, in one process."""
    out = tmp_path_factory.mktemp("watched") / "out"
    record = ("--record", out.with_suffix(".trace"))
    options = ("specs/essentials", SPEC, "--fail-on", "warning", *record)
    return run(out, names, "-m", "tspec", "run", *options, "--")


@pytest.mark.timeout(2 * PATIENCE)
@pytest.mark.parametrize("name", family(CASES, [*CASES][2::4]))
def test_training_is_the_same_and_nothing_fails(
    name: str, plain: RunResult, watched: RunResult
) -> None:
    (weights, state), (others, other) = plain.trained[name], watched.trained[name]
    assert len(weights) == len(others) > 0
    assert all(map(_same, weights, others))
    assert torch.equal(state, other)
    assert FAULTS.findall(watched.said[name]) == []


@pytest.mark.parametrize("name", ["gradients_of_samples", "gradients_of_texts"])
def test_what_cannot_be_read_within_a_transform_is_no_fault(name: str, watched: RunResult) -> None:
    assert "is not recorded" not in watched.said[name]


def test_rules_decide_to_the_end(watched: RunResult) -> None:
    assert watched.status == 1  # some cases are unsound, and rules say so
    assert FAULTS.findall(watched.said[""]) == []
    decided = re.search(r"([\d,]+) decided", watched.printed)
    assert decided is not None
    assert int(decided[1].replace(",", "")) > 1000


def test_the_recording_is_whole(names: list[str], watched: RunResult) -> None:
    [stream] = read_trace(watched.recording).streams
    assert isinstance(stream.records[-1], Finish)
    assert stream.records[-1].context.step > 2 * len(names)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    return a.dtype == b.dtype and torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0))

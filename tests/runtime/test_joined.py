"""Ranks with uneven batches that join: nothing is said, nobody waits, and rules across ranks go on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.families import EXHAUSTIVE, family
from tests.jobs import tspec
from tests.record.processes import ROOT
from tests.runtime.test_ranks import ALIKE, counts, findings, join, ranks
from tests.runtime.training import module
from tspec.runtime.ranks import sync
from tspec.trace.model import Boundary, Finish
from tspec.trace.read import read_trace

pytestmark = pytest.mark.gloo
JOB = ROOT / "tests" / "clean" / "joined.py"


@pytest.mark.parametrize("kind", family(("loader", "list", "left"), (), {"left"}))
def test_ranks_that_joined_number_steps_alike(kind: str, tmp_path: Path) -> None:
    recording = tmp_path / "run"
    options = ("--record", recording, "--", JOB, "--kind", kind, "--epochs", "2")
    done = tspec("run", "specs/essentials", *map(str, options))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "internal error" not in done.stderr
    assert "ranks make their steps apart" not in done.stderr
    steps = {
        stream.rank: [r.index for r in stream.records if _is_step(r)]
        for stream in read_trace(recording).streams
    }
    assert steps == {0: [1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 0], 1: [1, 2, 3, 0, 6, 7, 8, 0]}
    for stream in read_trace(recording).streams:
        assert isinstance(stream.records[-1], Finish)
        assert stream.records[-1].context.step == 10
    checked = tspec("check", "specs/essentials", "--trace", str(recording))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def _is_step(record: object) -> bool:
    return isinstance(record, Boundary) and record.span == "step"


BATCHES = (5, 3)
"""Of each rank, in each of two epochs: steps 1 to 5, and 6 to 10."""


NORM = "after optimizer.step\nexpect norm(parameters.grad) < 1000\nelse stop"


def joining(rank: int, meeting: str, folder: Path, rule: str, fault: int) -> None:
    """In step `fault` the first rank goes its own way. A rank that waits in vain waits until it is ended."""
    join(rank, meeting)
    os.environ["TSPEC_TIMEOUT"] = "300"
    sync.SOON = 300.0
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with module(rule).install(folder=folder) as checker:
        for epoch in range(2):
            with model.join():
                for batch in range(BATCHES[rank]):
                    step = 5 * epoch + batch + 1
                    optimizer.zero_grad()
                    model(torch.ones(4, 3)).square().mean().backward()
                    if rank == 0 and step == fault:
                        model.module.weight.grad.mul_(1e6)
                    optimizer.step()
                    (folder / f"did-{rank}").write_text(str(step))
    (folder / f"sync-{rank}").write_text(str(checker.coordinator.sync.mode))
    dist.destroy_process_group()


@pytest.mark.slow
def test_nobody_waits_for_a_rank_that_joined(tmp_path: Path) -> None:
    assert ranks(joining, tmp_path, ALIKE + "else stop", 0, wait=200) == [0, 0]
    # A wait that was in vain would have changed it.
    assert {(tmp_path / f"sync-{rank}").read_text() for rank in range(2)} == {str(sync.LOCKSTEP)}
    assert findings(tmp_path) == []
    # Two parameters in six steps of both ranks, and in four of the first alone.
    assert counts(tmp_path) == {"holds": 12, "violated": 0, "idle": 0, "unknown": 8}


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        pytest.param(ALIKE + "else stop", 2, id="before", marks=EXHAUSTIVE),
        pytest.param(NORM, 4, id="within"),
        pytest.param(ALIKE + "else stop", 7, id="after", marks=EXHAUSTIVE),
        pytest.param(NORM, 9, id="within-again", marks=EXHAUSTIVE),
    ],
)
def test_a_rule_stops_both_before_within_and_after_joining(
    tmp_path: Path, rule: str, fault: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ranks(joining, tmp_path, rule, fault, wait=200) == [1, 1]
    said = capfd.readouterr().err
    ends = [json.loads(path.read_text())["stopped"] for path in tmp_path.glob("*.counts.json")]
    assert [one.partition(" by ")[0] for one in ends] == [f"stopped in step {fault}"] * 2, said
    assert (tmp_path / "did-0").read_text() == str(fault)

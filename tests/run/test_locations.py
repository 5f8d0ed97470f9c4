"""Findings name the line of the script, alike while it runs and over its recording."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests import warm
from tests.run.jobs import done as python
from tests.run.jobs import environment
from tspec.record import record
from tspec.trace.model import Location
from tspec.trace.read import read_trace

NETS = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return torch.nn.functional.dropout(self.layer(x), 0.5)
"""
TRAIN = """\
import torch

from parts.nets import Net


def train_epoch(net, optimizer):
    for _ in range(3):
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step(
        )

torch.manual_seed(0)
net = Net()
train_epoch(net, torch.optim.SGD(net.parameters(), lr=0.1))
"""
RULES = """\
edition 2026

module checks

use std.torch

/// The place is the backward pass before which the call was to come.
invariant gradients_are_cleared {
  before backward
  when step > 1
  expect contains optimizer.zero_grad
  else warn
}

/// The place is the update that ended the step.
invariant steps_decay {
  each step
  expect contains scheduler.step
  else warn
}

/// The place is the update that came too early.
invariant clears_come_first {
  each step
  expect optimizer.zero_grad before optimizer.step
  else warn
}

invariant nothing_is_dropped {
  for c in calls(dropout)
  expect not c.training
  else warn
}

/// Looked back at, so that it is decided with what was read before.
invariant weights_stay {
  for p in parameters
  after optimizer.step
  when step > 1
  expect norm(p.data) == previous(norm(p.data))
  else warn
}
"""
LINES = {
    "checks.gradients_are_cleared": ("jobs/train.py", 8, "train_epoch"),
    "checks.steps_decay": ("jobs/train.py", 9, "train_epoch"),
    "checks.clears_come_first": ("jobs/train.py", 9, "train_epoch"),
    "checks.nothing_is_dropped": ("jobs/parts/nets.py", 10, "Net.forward"),
    "checks.weights_stay": ("jobs/train.py", 9, "train_epoch"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "jobs" / "parts").mkdir(parents=True)
    (tmp_path / "jobs" / "parts" / "nets.py").write_text(NETS)
    (tmp_path / "jobs" / "train.py").write_text(TRAIN)
    (tmp_path / "checks.tspec").write_text(RULES)
    (tmp_path / "tspec.toml").write_text("")
    return tmp_path


def located(text: str) -> dict[str, tuple[str, int, str]]:
    found: list[dict[str, Any]] = json.loads(text)
    every = [each for one in found for each in (one, *one["consequences"])]
    return {
        each["rule"]: tuple(each["location"][key] for key in ("file", "line", "function"))
        for each in every
    }


JSON = ("--output-format", "json")


def done(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """`tspec` with arguments in a folder."""
    return warm.run(*arguments, cwd=folder, env=environment(folder))


def test_a_run_and_a_check_of_its_recording_name_the_same_lines(project: Path) -> None:
    ran = done(project, "run", "checks.tspec", *JSON, "--record", "a", "--", "jobs/train.py")
    assert located(ran.stdout) == LINES, ran.stderr
    assert "; at jobs/train.py:9 in train_epoch: optimizer.step(\n" in ran.stderr
    checked = done(project, "check", "checks.tspec", "--trace", "a", *JSON)
    assert located(checked.stdout) == LINES, checked.stderr
    rule = ("gradients_are_cleared", "--specs", "checks.tspec")
    asked = done(project, "why", *rule, "--trace", "a")
    assert "      at jobs/train.py:8 in train_epoch: net(torch.ones(1," in asked.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
def test_files_are_named_from_the_project_on_wherever_the_command_is_typed(project: Path) -> None:
    here = project / "jobs"
    ran = done(here, "run", "../checks.tspec", *JSON, "--record", "a", "--", "train.py")
    assert located(ran.stdout) == LINES, ran.stderr
    recorded = done(here, "record", "-o", "b", "--", "train.py")
    assert recorded.returncode == 0, recorded.stderr
    assert locations(here / "a") == locations(here / "b") != set()


def locations(folder: Path) -> set[Location]:
    records = read_trace(folder).streams[0].records
    found = (getattr(record, "location", None) for record in records)
    return {at for at in found if at is not None}


def test_redacted_paths_are_not_stored(project: Path) -> None:
    redact = ("--redact", "paths")
    ran = done(
        project,
        "run",
        "checks.tspec",
        *JSON,
        *redact,
        "--record",
        "a",
        "--",
        "jobs/train.py",
    )
    assert {one["location"] for one in json.loads(ran.stdout)} == {None}, ran.stderr
    assert "train.py" not in ran.stdout + ran.stderr
    recorded = done(project, "record", *redact, "-o", "b", "--", "jobs/train.py")
    assert recorded.returncode == 0, recorded.stderr
    for folder in (project / "a", project / "b"):
        assert locations(folder) == set()
        assert "command" not in read_trace(folder).meta
        held = b"".join(path.read_bytes() for path in folder.iterdir())
        assert not [name for name in (b"train.py", b"nets.py", b"train_epoch") if name in held]


@pytest.mark.slow
def test_a_recording_in_code_leaves_out_paths(project: Path) -> None:
    (project / "jobs/block.py").write_text(
        "import runpy, sys\n"
        "import tspec\n"
        "sys.path.insert(0, 'jobs')\n"
        "with tspec.record('told'):\n"
        "    runpy.run_path('jobs/train.py', run_name='__main__')\n"
    )
    text = (project / "jobs/block.py").read_text()
    (project / "jobs/redacted.py").write_text(text.replace("'told'", "'kept', redact='paths'"))
    for script in ("block", "redacted"):
        ran = python(project, f"jobs/{script}.py")
        assert ran.returncode == 0, ran.stderr
    assert locations(project / "told") != set()
    assert locations(project / "kept") == set()
    assert "command" not in read_trace(project / "kept").meta
    with pytest.raises(ValueError, match="redact"):
        record(project / "other", redact="names")  # type: ignore[arg-type]

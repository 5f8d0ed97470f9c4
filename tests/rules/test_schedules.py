"""Schedules of a loop that is a function are gone when the run ends, and are judged all the same. Optimizers that take turns have a thousand steps for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs import run

JOB = """
import sys
import torch
from torch import nn

def train(total, resumed):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
    if resumed:
        schedule.load_state_dict(schedule.state_dict() | {"last_epoch": resumed})
    for step in range(12):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        schedule.step()

train(*map(int, sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("total", "resumed", "found"),
    [(12, 0, False), (13, 0, False), (30, 18, False), (100, 0, True), (6, 0, True), (12, 18, True)],
)
def test_a_schedule_that_does_not_fit_the_run(
    total: int, resumed: int, found: bool, tmp_path: Path
) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    report = tmp_path / "report.json"
    outcome = run(["specs/advice"], script, report, str(total), str(resumed))
    assert bool(outcome.steps("schedules_fit_the_run")) == found, outcome.messages


NEVER_STEPPED = """
import sys
import torch
from torch import nn

def train(momentum, updates):
    model, other = nn.Linear(4, 2), nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=momentum)
    other_optimizer = torch.optim.SGD(other.parameters(), 0.1, momentum=momentum)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer if updates else other_optimizer, 60)
    for step in range(60):
        optimizer.zero_grad()
        other(model(torch.randn(8, 4))).square().mean().backward()
        optimizer.step()

train(float(sys.argv[1]), int(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("momentum", "updates", "found"), [("0", "1", True), ("0.9", "1", True), ("0", "0", False)]
)
def test_a_schedule_that_is_never_stepped_matters_where_its_optimizer_makes_updates(
    momentum: str, updates: str, found: bool, tmp_path: Path
) -> None:
    script = tmp_path / "job.py"
    script.write_text(NEVER_STEPPED)
    report = tmp_path / "report.json"
    outcome = run(["specs/hygiene"], script, report, momentum, updates)
    assert bool(outcome.steps("schedules_are_stepped")) == found, outcome.messages


OF_TURNS = "optimizers_cleared_together_make_updates"
TURNS = """
import sys
import torch
from torch import nn

towers = [nn.Linear(4, 2), nn.Linear(4, 2)]
optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in towers]
for step in range(203):
    for optimizer in optimizers:
        optimizer.zero_grad()
    batch = torch.randn(8, 4)
    (towers[0](batch) * towers[1](batch)).square().mean().backward()
    optimizers[step >= int(sys.argv[1])].step()
"""


EPOCHS = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

towers = [nn.Linear(4, 2), nn.Linear(4, 2)]
optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in towers]
loader = DataLoader(TensorDataset(torch.randn(112, 4)), batch_size=8, shuffle=True)
for epoch in range(3):
    for [batch] in loader:
        for optimizer in optimizers:
            optimizer.zero_grad()
        (towers[0](batch) * towers[1](batch)).square().mean().backward()
        optimizers[epoch % int(sys.argv[1])].step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "turns", "steps"),
    [(TURNS, 190, []), (TURNS, 203, [200]), (EPOCHS, 2, []), (EPOCHS, 1, [30])],
)
def test_optimizers_in_turn(text: str, turns: int, steps: list[int], tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(text)
    outcome = run(["specs/hygiene"], script, tmp_path / "report.json", str(turns))
    assert outcome.steps(OF_TURNS) == steps
    assert len(outcome.all) == len(steps), outcome.messages


BRANCH = """
import sys
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
built = torch.optim.Adam(model.parameters(), lr=0.1)
for each in range(20):
    built.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    built.step()
state = built.state_dict()
del built
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
optimizer.load_state_dict(state)
begins, ends = map(float, sys.argv[1:])
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, begins, ends, total_iters=10)
if begins == ends:  # it was built with the rate at its highest
    for group in optimizer.param_groups:
        group["lr"] *= 2
for step in range(10):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    schedule.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begins", "ends", "found"), [(1.0, 0.1, False), (0.1, 1.0, True), (1.0, 1.0, True)]
)
def test_a_schedule_on_a_loaded_state(
    begins: float, ends: float, found: bool, tmp_path: Path
) -> None:
    script = tmp_path / "job.py"
    script.write_text(BRANCH)
    outcome = run(["specs/hygiene"], script, tmp_path / "report.json", str(begins), str(ends))
    assert bool(outcome.steps("resumed_schedules_go_on")) == found, outcome.messages

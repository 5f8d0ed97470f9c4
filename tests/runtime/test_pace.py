"""Ranks that do not make their steps together: pipelines, uneven numbers of steps, one that ends early. None hangs."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

from tests.families import family
from tests.runtime.test_ranks import counts, findings, join, ranks
from tests.runtime.training import module

pytestmark = pytest.mark.gloo

FINITE = "for p in parameters\nacross world\nafter optimizer.step\nexpect finite(p.data)\n"
LOSS = "each step\nexpect loss < 1000\n"


def stage(rank: int, folder: Path, count: int, late: bool) -> None:
    """One of two stages of a pipeline; the second updates before it gives the gradient back, if `late`."""
    torch.manual_seed(rank)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, count + 1):
        optimizer.zero_grad()
        if rank == 0:
            output = model(torch.ones(2, 4))
            dist.send(output.detach(), 1)
            gradient = torch.empty(2, 4)
            dist.recv(gradient, 1)
            output.backward(gradient)
            optimizer.step()
        else:
            received = torch.empty(2, 4)
            dist.recv(received, 0)
            received.requires_grad_()
            loss = model(received).square().mean() * (1e6 if step == 4 else 1)
            loss.backward()
            if late:
                optimizer.step()
            dist.send(received.grad, 0)
            if not late:
                optimizer.step()
        (folder / f"did-{rank}").write_text(str(step))


def pipeline(rank: int, meeting: str, folder: Path, action: str, late: bool) -> None:
    join(rank, meeting)
    with module(LOSS + f"else {action}").install(folder=folder):
        stage(rank, folder, 8, late)
    dist.destroy_process_group()


@pytest.mark.parametrize("late", family((False, True), (), {"True"}))
def test_stages_of_a_pipeline_stop_in_the_same_step(
    tmp_path: Path, late: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ranks(pipeline, tmp_path, "stop", late) == [1, 1]
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert all(f"rank {rank}: stopped in step 4" in said for rank in range(2))
    did = {(tmp_path / f"did-{rank}").read_text() for rank in range(2)}
    assert len(did) == 1
    assert did <= {"4", "5"}


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_pipeline_that_is_only_watched_runs_to_its_end(tmp_path: Path) -> None:
    assert ranks(pipeline, tmp_path, "warn", False) == [0, 0]
    assert {(tmp_path / f"did-{rank}").read_text() for rank in range(2)} == {"8"}
    assert min(one["step"] for one in findings(tmp_path)) == 4


def uneven(rank: int, meeting: str, folder: Path, steps: tuple[int, int]) -> None:
    join(rank, meeting)
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with module(FINITE + "else stop").install(folder=folder):
        for _ in range(steps[rank]):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.slow
def test_ranks_with_different_numbers_of_steps_end(tmp_path: Path) -> None:
    assert ranks(uneven, tmp_path, (9, 4)) == [0, 0]
    assert findings(tmp_path) == []
    assert counts(tmp_path)["holds"] > 0


def alone(rank: int, meeting: str, folder: Path) -> None:
    """The first rank evaluates alone after each step, and sends its result to all."""
    join(rank, meeting)
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with module(FINITE + "else stop").install(folder=folder):
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            optimizer.step()
            score = torch.zeros(1)
            if rank == 0:
                with torch.no_grad():
                    score += model(torch.zeros(4, 3)).sum()
            dist.broadcast(score, 0)
    dist.destroy_process_group()


def test_a_rank_that_evaluates_alone_holds_up_nobody(tmp_path: Path) -> None:
    assert ranks(alone, tmp_path) == [0, 0]
    assert findings(tmp_path) == []


def left(rank: int, meeting: str, folder: Path) -> None:
    """No rank destroys the process group."""
    join(rank, meeting)
    os.environ["TSPEC_TIMEOUT"] = "5"
    uneven_steps = 3
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with module(FINITE + "else warn").install(folder=folder):
        for _ in range(uneven_steps):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            optimizer.step()


@pytest.mark.slow
def test_a_job_that_leaves_its_group_alone_ends_with_its_own_status(tmp_path: Path) -> None:
    assert ranks(left, tmp_path) == [0, 0]


def unchecked(rank: int, meeting: str, folder: Path) -> None:
    """Only the first rank is checked."""
    join(rank, meeting)
    os.environ["TSPEC_TIMEOUT"] = "5"
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    program = module(FINITE + "else stop")
    with program.install(folder=folder) if rank == 0 else nullcontext():
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            optimizer.step()
            dist.all_reduce(torch.ones(1))
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_rank_that_is_not_checked_is_not_waited_for_long(tmp_path: Path) -> None:
    assert ranks(unchecked, tmp_path) == [0, 0]
    assert counts(tmp_path)["unknown"] > 0


def again(rank: int, meeting: str, folder: Path) -> None:
    """A job ends its process group and sets it up anew, elsewhere: at one address PyTorch itself may hang."""
    join(rank, meeting)
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with module(FINITE + "else warn").install(folder=folder):
        for turn in range(2):
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.ones(4, 3)).square().mean().backward()
                optimizer.step()
            dist.barrier()
            dist.destroy_process_group()
            if turn == 0:
                place = f"file://{folder / 'anew'}"
                dist.init_process_group("gloo", init_method=place, rank=rank, world_size=2)


def test_a_process_group_can_be_set_up_anew(tmp_path: Path) -> None:
    assert ranks(again, tmp_path) == [0, 0]
    assert findings(tmp_path) == []

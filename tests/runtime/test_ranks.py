"""Rules across ranks in a real job of two processes: they agree on what to do, and a dead one holds up nobody."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from tests.runtime.training import module
from tspec.runtime.ranks.allgather import AllGather
from tspec.runtime.ranks.packets import Packet
from tspec.runtime.ranks.sync import INDEPENDENT, STAGGERED

pytestmark = pytest.mark.gloo

ALIKE = "for p in parameters\nacross world\nafter optimizer.step\nexpect same(p.data)\n"


def ranks(worker: Any, *arguments: Any, wait: float = 400.0, world: int = 2) -> list[int | None]:
    """Run a function in so many processes; their exit codes. They are ended if they hang.

    A fresh process forks them. It is itself a fork of a server that has imported torch and done nothing else, one for
    all tests of a worker of pytest.
    """
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["torch._dynamo", __name__])
    receiver, sender = context.Pipe(duplex=False)
    outputs = [Connection(os.dup(place)) for place in (1, 2)]
    given = (sender, outputs, dict(os.environ), (worker, arguments, wait, world))
    launcher = context.Process(target=_launched, args=given)
    launcher.start()
    for each in (sender, *outputs):
        each.close()
    codes: list[int | None] = receiver.recv()
    launcher.join()
    return codes


def _launched(
    codes: Connection, outputs: list[Connection], environment: dict[str, str], given: Any
) -> None:
    """In a fork of the server: what it prints goes where the test's own output goes."""
    for place, output in enumerate(outputs, 1):
        os.dup2(output.fileno(), place)
    os.environ.clear()
    os.environ.update(environment)
    codes.send(_forked(*given))


def _forked(worker: Any, arguments: tuple[Any, ...], wait: float, world: int) -> list[int | None]:
    context = mp.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"file://{folder}/meeting"
        started = [
            context.Process(target=worker, args=(rank, meeting, *arguments))
            for rank in range(world)
        ]
        for process in started:
            process.start()
        until = time.monotonic() + wait
        for process in started:
            process.join(max(0.1, until - time.monotonic()))
        for process in started:
            if process.is_alive():
                process.kill()
                process.join()
    return [process.exitcode for process in started]


def join(rank: int, meeting: str, world: int = 2) -> None:
    os.environ["TSPEC_TIMEOUT"] = "60"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)


def steps(folder: Path, rank: int, fault: int, count: int = 4, leave: int = 0) -> None:
    """Train alike on both ranks; in step `fault` rank 1 goes its own way, after step `leave` it dies."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, count + 1):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).square().mean().backward()
        if rank == 1 and step == fault:
            model.weight.grad.mul_(3)  # type: ignore[union-attr]
        optimizer.step()
        (folder / f"did-{rank}").write_text(str(step))
        if rank == 1 and step == leave:
            os._exit(7)


def diverge(rank: int, meeting: str, folder: Path, action: str) -> None:
    join(rank, meeting)
    with module(ALIKE + f"else {action}").install(folder=folder):
        steps(folder, rank, fault=2)
    dist.destroy_process_group()


def die(rank: int, meeting: str, folder: Path) -> None:
    join(rank, meeting)
    with module(ALIKE + "else stop").install(folder=folder):
        steps(folder, rank, fault=0, leave=2)


def skip_on_one(rank: int, meeting: str, folder: Path) -> None:
    join(rank, meeting)
    rule = "before optimizer.step\nexpect norm(parameters.grad) < 100\nelse skip"
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    with module(rule).install(folder=folder):
        model(torch.ones(4, 3)).square().mean().backward()
        if rank == 1:
            model.weight.grad.fill_(1e6)  # type: ignore[union-attr]
        optimizer.step()
        (folder / f"skipped-{rank}").write_text(str(torch.equal(before, model.weight)))


def counts(folder: Path) -> dict[str, int]:
    total: dict[str, int] = {}
    for path in folder.glob("*.counts.json"):
        for verdict, number in json.loads(path.read_text())["counts"]["t.r0"].items():
            total[verdict] = total.get(verdict, 0) + number
    return total


def findings(folder: Path) -> list[dict[str, Any]]:
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_a_divergence_is_found_once_with_the_values_of_both(tmp_path: Path) -> None:
    assert ranks(diverge, tmp_path, "warn") == [0, 0]
    found = findings(tmp_path)
    assert {(one["step"], one["subject"]) for one in found} >= {(s, "weight") for s in (2, 3, 4)}
    assert all(one["ranks"] == [0, 1] for one in found)
    assert "rank 0: " in found[0]["values"]["digest(p.data)"]
    assert counts(tmp_path)["violated"] == len(found)


@pytest.mark.slow
def test_stop_ends_both_in_the_same_step_without_a_hang(tmp_path: Path) -> None:
    assert ranks(diverge, tmp_path, "stop") == [1, 1]
    assert {(tmp_path / f"did-{rank}").read_text() for rank in range(2)} == {"2"}


@pytest.mark.slow
def test_skip_is_taken_by_both_where_one_has_reason(tmp_path: Path) -> None:
    assert ranks(skip_on_one, tmp_path) == [0, 0]
    assert [(tmp_path / f"skipped-{rank}").read_text() for rank in range(2)] == ["True", "True"]


@pytest.mark.slow
def test_a_dead_rank_makes_it_unknown_and_training_goes_on(tmp_path: Path) -> None:
    assert ranks(die, tmp_path) == [0, 7]
    assert (tmp_path / "did-0").read_text() == "4"
    assert findings(tmp_path) == []
    assert counts(tmp_path)["unknown"] > 0
    assert counts(tmp_path)["holds"] > 0


def hang(rank: int, meeting: str, folder: Path) -> None:
    join(rank, meeting)
    os.environ["TSPEC_TIMEOUT"] = "3"
    with module(ALIKE + "else stop").install(folder=folder):
        steps(folder, rank, fault=0, count=1)
        if rank == 1:
            time.sleep(5)
        steps(folder, rank, fault=0, count=3)


@pytest.mark.slow
def test_a_hung_rank_is_not_waited_for(tmp_path: Path) -> None:
    assert ranks(hang, tmp_path) == [0, 0]
    assert {(tmp_path / f"did-{rank}").read_text() for rank in range(2)} == {"3"}
    assert findings(tmp_path) == []
    assert counts(tmp_path)["holds"] > 0
    assert counts(tmp_path)["unknown"] == 0


def farewell(finished: bool) -> Packet:
    return Packet((1, 0), finished, [], [], {}, {}, {}, [], set(), [])


def part(rank: int, meeting: str, folder: Path, late: float, patience: float) -> None:
    """Both end by a stop, the second rank some seconds after the first."""
    join(rank, meeting)
    exchange = AllGather()
    assert exchange.ready()
    exchange.give(farewell(False))
    assert exchange.collect(100.0) is not None
    if rank == 1:
        time.sleep(late)
        (folder / "ends").touch()
    exchange.part(farewell(True), patience)
    (folder / f"saw-{rank}").write_text(str((folder / "ends").exists()))
    exchange.close()


@pytest.mark.slow
@pytest.mark.parametrize(("late", "patience", "saw"), [(2.0, 30.0, "True"), (6.0, 1.0, "False")])
def test_ranks_that_stop_wait_for_one_another_for_a_while(
    tmp_path: Path, late: float, patience: float, saw: str
) -> None:
    assert ranks(part, tmp_path, late, patience) == [0, 0]
    assert (tmp_path / "saw-0").read_text() == saw


def fail_meanwhile(rank: int, meeting: str, folder: Path) -> None:
    """The first rank is stopped for what the second did, which fails before it looks."""
    join(rank, meeting)
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with module(ALIKE + "else stop").install(folder=folder) as checker:
        checker.coordinator.sync.at_least(INDEPENDENT)
        for step in range(1, 100):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            if rank == 1 and step == 2:
                model.weight.grad.mul_(3)  # type: ignore[union-attr]
            optimizer.step()
            time.sleep(0.1 if rank == 0 else 2.0)
            if rank == 1 and step == 3:
                time.sleep(3)
                raise ConnectionError("Connection closed by peer")


@pytest.mark.slow
def test_a_rank_that_fails_since_another_was_stopped_was_stopped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ranks(fail_meanwhile, tmp_path) == [1, 1]
    said = capfd.readouterr().err
    ends = [json.loads(path.read_text())["stopped"] for path in tmp_path.glob("*.counts.json")]
    assert len(ends) == 2
    assert all(one.startswith("stopped in step ") for one in ends), said


def stop_beside_an_idle_rule(rank: int, meeting: str, folder: Path) -> None:
    """A rule is idle for the first time in the packet that a stop leaves behind, and again where the script goes on after it."""
    join(rank, meeting)
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    idle = "for p in parameters\nacross world\nafter clip\nwhen step > 100\nexpect same(p.data)\nelse warn"
    with module(ALIKE + "else stop", idle).install(folder=folder) as checker:
        checker.coordinator.sync.at_least(STAGGERED)
        with suppress(SystemExit):
            for step in range(1, 5):
                optimizer.zero_grad()
                model(torch.full((4, 3), 1.0 + rank)).square().mean().backward()
                optimizer.step()
                if step == 2:
                    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    said = checker.faults
    (folder / f"said-{rank}").write_text(f"{checker.coordinator.stopped}\n{said}")


@pytest.mark.slow
def test_a_script_that_goes_on_after_a_stop_ends_without_a_fault(tmp_path: Path) -> None:
    assert ranks(stop_beside_an_idle_rule, tmp_path) == [0, 0]
    for rank in range(2):
        stopped, said = (tmp_path / f"said-{rank}").read_text().splitlines()
        assert stopped.startswith("stopped in step 1 by t.r0")
        assert said == "[]"


def test_a_folder_that_is_gone_is_no_error_to_the_job(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    program = module("each step\nexpect loss < 0\nelse warn")
    with program.install(folder=folder):
        steps(tmp_path, 0, fault=0, count=2)
        shutil.rmtree(folder)
        steps(tmp_path, 0, fault=0, count=2)
    assert not folder.exists()

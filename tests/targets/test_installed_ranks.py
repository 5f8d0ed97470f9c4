"""Ranks with generated hooks, as a launcher starts them: the first says for all what the job came to, and notes are said once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.run.jobs import CLEARED, PATIENCE, environment, free_port, job

pytestmark = pytest.mark.gloo

TRAIN = """\
import contextlib
import sys
import torch
import torch.distributed as dist
import tspec
import hooks

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
hooked = dist.get_rank() == 0 or "first" not in sys.argv
with tspec.record("out"), hooks.install() if hooked else contextlib.nullcontext():
    for step in range(1, 5):
        model(torch.randn(3, 4)).square().mean().backward()
    dist.barrier()
    dist.destroy_process_group()
print("trained")
"""


def ranks(folder: Path, *how: str) -> list[str]:
    """What each of two ranks wrote on standard error."""
    place = environment(folder, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
    place |= {"MASTER_PORT": str(free_port()), "LOCAL_WORLD_SIZE": "2", "PYTHONPATH": str(folder)}
    started = [
        subprocess.Popen(
            [sys.executable, "train.py", *how],
            cwd=folder,
            env=place | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    told = []
    for process in started:
        try:
            said, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        assert said == "trained\n", errors
        told.append(errors)
    return told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = job(tmp_path, gradients_are_cleared=CLEARED)
    (made / "train.py").write_text(TRAIN)
    command = [sys.executable, "-m", "tspec", "compile", "checks.tspec", "-o", "hooks.py"]
    subprocess.run(command, cwd=made, check=True, timeout=PATIENCE)
    return made


@pytest.mark.slow
def test_the_first_rank_says_for_all_what_was_found(folder: Path) -> None:
    first, second = ranks(folder)
    assert "checks.gradients_are_cleared (checks.tspec:8): violated in 6 of 6 decided" in first
    assert "\n  step 2, rank 0: no call of `optimizer.zero_grad`\n" in first
    assert "tspec: 1 rule: 1 violated, 0 held. 8 instances, 6 decided.\n" in first
    assert "decided" not in second
    assert (first + second).count("no optimizer was seen") == 1


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_rank_without_hooks_is_not_missed(folder: Path) -> None:
    first, second = ranks(folder, "first")
    assert "tspec: 1 rule: 1 violated, 0 held. 4 instances, 3 decided.\n" in first
    assert "did not come" not in first
    assert "decided" not in second

"""DistributedDataParallel with gradient accumulation over two steps, by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PATIENCE = 400
"""Seconds; the machine may be busy."""


def compared(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What the command does, with its report in `report.json`."""
    specs, script = str(HERE / "data_parallel.tspec"), str(HERE / "data_parallel.py")
    report, runs = str(folder / "report.json"), str(folder / "runs")
    asked = ("--equivalence", "two_ranks_are_one", "--report", report, "--record", runs)
    return subprocess.run(
        [sys.executable, "-m", "tspec", "run", specs, *asked, "--", script, *options],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_ranks_that_see_parts_of_the_batch_agree_with_one_that_sees_all(tmp_path: Path) -> None:
    done = compared(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    first, *others = done.stdout.splitlines()
    assert first == ("checks.data_parallel.two_ranks_are_one: 44 tensors compared, none differs")
    assert "  outputs Sequential" in others
    assert json.loads((tmp_path / "report.json").read_text()) == []
    runs = {each.name for each in (tmp_path / "runs").iterdir() if each.is_dir()}
    assert runs == {"reference", "sample-1", "sample-2", "candidate"}


@pytest.mark.slow
@pytest.mark.gloo
def test_gradients_that_were_not_reduced_are_named_as_that(tmp_path: Path) -> None:
    done = compared(tmp_path, "--fault")
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads((tmp_path / "report.json").read_text())
    *faults, difference = found
    assert (faults[0]["kind"], faults[0]["subject"]) == ("param_grads", "0.weight")
    assert faults[0]["message"].endswith(
        "the mean of the replicas is the reference, so a reduction is missing"
    )
    assert (difference["what"], difference["subject"]) == ("difference", "0.weight")
    assert difference["times"] > 1000
    worst = [each["times"] for each in difference["consequences"]]
    assert worst == sorted(worst, reverse=True)

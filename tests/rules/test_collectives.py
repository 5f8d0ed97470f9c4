"""`specs/communication` on collectives of each kind: silent on a sound job, and it finds a fault of each.

With gloo a rank in another group, or one that reduces other sizes, ends or hangs the job before any rule is decided.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.gloo]
JOB = Path(__file__).with_name("collectives_job.py")
ROOT = JOB.parents[2]


def run(tmp_path, *options):
    """The exit status, the rules that were violated, and how many instances were decided."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "tspec", "run", "specs/communication"]
    done = subprocess.run(
        [*command, "--report", str(report), "--", str(JOB), *options],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert "internal error" not in done.stderr, done.stderr
    waiting, found = json.loads(report.read_text()), set()
    while waiting:
        one = waiting.pop()
        found.add(one["rule"].rpartition(".")[2])
        waiting += one["consequences"]
    return done, found


@pytest.mark.parametrize(
    ("kind", "held"),
    [("all", 6), ("fsdp", 3), ("dtensor", 4)],
)
def test_sound_collectives(kind, held, tmp_path):
    done, found = run(tmp_path, kind)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr
    assert f"0 violated, {held} held" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("kind", "fault", "rule"),
    [
        ("async", "early", "results_are_waited_for"),
        ("async", "written", "results_are_waited_for"),
        ("async", "order", "ranks_reduce_in_one_order"),
        ("plain", "op", "ranks_reduce_by_one_operation"),
        ("functional", "op", "ranks_reduce_by_one_operation"),
        ("all", "splits", "split_sizes_fit"),
    ],
)
def test_faults(kind, fault, rule, tmp_path):
    done, found = run(tmp_path, kind, fault)
    assert done.returncode == 1, done.stdout + done.stderr
    assert rule in found

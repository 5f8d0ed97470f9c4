"""Jobs on a GPU: rules and recording change nothing, clean jobs are silent, and bugs are found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

TRAIN = str(Path(__file__).with_name("train.py"))
ROOT = Path(__file__).parents[2]
ESSENTIALS = str(ROOT / "specs/essentials")
SHORT = ("--device", "cuda", "--deterministic", "--first", "20", "--steps", "10")
JOBS = {
    "float32": (),
    "bf16": ("--precision", "bf16"),
    "fp16 with a scaler": ("--precision", "fp16", "--fused"),
    "accumulated": ("--precision", "bf16", "--accumulate", "2"),
    "copies on a stream": ("--streams",),
    "graph of the model": ("--graph", "model"),
    "graph of the step": ("--graph", "step"),
    "compiled": ("--compile", "default", "--precision", "bf16"),
    "compiled with graphs": ("--compile", "reduce-overhead", "--precision", "bf16"),
}
"""Clean jobs, and their options."""


def run(*start: str, job: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    command = [sys.executable, *start, TRAIN, *SHORT, *job]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


def losses(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    [line] = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found: list[str] = json.loads(line)["losses"]
    return found


@pytest.mark.parametrize("job", JOBS.values(), ids=list(JOBS))
def test_clean_jobs_are_silent_and_unchanged(job: tuple[str, ...], tmp_path: Path) -> None:
    plain = losses(run(job=job))
    ruled = run("-m", "tspec", "run", ESSENTIALS, "--", job=job)
    assert losses(ruled) == plain
    assert "nothing found" in ruled.stdout
    assert "Error" not in ruled.stderr and "Triton cannot" not in ruled.stderr, ruled.stderr
    recorded = run("-m", "tspec", "record", "-o", str(tmp_path / "r"), "--", job=job)
    assert losses(recorded) == plain
    assert "Error" not in recorded.stderr, recorded.stderr
    if "--graph" in job:
        assert "a CUDA graph is replayed" in ruled.stderr


@pytest.mark.parametrize(
    ("bug", "rule"),
    [
        ("--frozen", "optimizers_hold_all_trainable_parameters"),
        ("--no-clear", "gradients_are_cleared"),
    ],
)
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_bugs_are_found(bug: str, rule: str, precision: str) -> None:
    done = run("-m", "tspec", "run", ESSENTIALS, "--", job=(bug, "--precision", precision))
    assert rule in done.stdout, done.stdout

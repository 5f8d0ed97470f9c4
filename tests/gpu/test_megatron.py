"""megatron-core on a GPU, without the stand-ins of the other tests: its pack changes nothing and is silent.

Experts are left out: without Transformer Engine the router of megatron-core 0.16.1 ends with a NameError (`te_general_gemm`).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ROOT = Path(__file__).parents[2]
TRAIN = str(ROOT / "tests/megatron/train.py")


@pytest.mark.parametrize("layout", ["bf16,zero,steps=12", "clipped,rope,steps=12"])
def test_clean_jobs_are_silent_and_unchanged(layout: str, tmp_path: Path) -> None:
    def losses(name: str, *start: str) -> tuple[object, str]:
        report = tmp_path / name
        done = subprocess.run(
            [sys.executable, *start, TRAIN, layout, "--report", str(report)],
            cwd=ROOT, env=os.environ | {"TESTS_ON_GPU": "1", "TORCHDYNAMO_DISABLE": "1"},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return json.loads(report.read_text()), done.stdout + done.stderr

    plain, _ = losses("plain.json")
    ruled, said = losses("ruled.json", "-m", "tspec", "run", str(ROOT / "specs/megatron"), "--")
    assert "nothing found" in said, said
    assert "Error" not in said.replace("RuntimeWarning", ""), said
    assert ruled == plain

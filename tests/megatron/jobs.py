"""Jobs of megatron-core under `tspec`, as a user starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRAIN = "tests/megatron/train.py"
PATIENCE = 400
"""Seconds; the machine may be busy."""


def done(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The interpreter with arguments, in the repository, to its end."""
    outside = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=outside | {"OMP_NUM_THREADS": "1"} | more,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def recorded(folder: Path, layout: str, use: Path) -> None:
    """Record the job of a layout, with the events of a spec."""
    options = ("record", "--use", str(use), "-o", str(folder))
    ended = done("-m", "tspec", *options, "--", TRAIN, layout)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "internal error" not in ended.stderr
    assert "the recording of rank" not in ended.stderr  # it ends before the job does

"""A recording tells a new task as the job does: by inputs that become larger."""

import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).resolve().parents[1] / "clean" / "new_tasks.py"


def tspec(*arguments: str) -> str:
    """What a command prints. It has to succeed."""
    command = [sys.executable, "-m", "tspec", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.exhaustive
def test_longer_sequences_are_another_task_in_a_recording(tmp_path: Path) -> None:
    tspec("record", "-o", f"{tmp_path}/run", "--", str(JOB), "--kind", "lengths", "--no-loader")
    assert "nothing found" in tspec("check", "std.health", "--trace", f"{tmp_path}/run")

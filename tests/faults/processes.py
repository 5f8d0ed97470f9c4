"""`python -m tspec ARGUMENTS` in a process of its own, with one thread."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOB = Path(__file__).resolve().parent / "scripts" / "job.py"
PATIENCE = 400.0
"""Seconds for one process; the machine may be busy."""
TSPEC = (sys.executable, "-m", "tspec")


def environment() -> dict[str, str]:
    """This process's environment, with one thread."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}

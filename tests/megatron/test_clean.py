"""The Megatron pack says nothing of sound jobs, and decides something of each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.megatron.jobs import TRAIN, done


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    "layout",
    [
        "tp=2,sp,experts=4,etp=2,steps=4",
        "pp=2,recompute,warmup=2,steps=4",
        "pp=2,virtual=2,steps=4",
        "dp=2,zero,bf16,steps=4",
        "bf16,recompute,steps=4",
    ],
)
def test_the_megatron_pack_is_silent(layout: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    ended = done(
        "-m", "tspec", "run", "specs/megatron", "--report", str(report), "--", TRAIN, layout
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert json.loads(report.read_text()) == []
    assert "internal error" not in ended.stderr
    decided = re.search(r"([\d,]+) decided", ended.stdout)
    assert decided is not None and int(decided[1].replace(",", "")) > 100

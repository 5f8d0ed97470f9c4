"""Packs say nothing of the sound jobs that they are meant for, and decide something of each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.megatron.jobs import TRAIN, done


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("layout", "packs"),
    [
        ("tp=2,sp,experts=4,etp=2,steps=4", ("megatron",)),
        ("pp=2,recompute,warmup=2,steps=4", ("megatron", "communication")),
        ("pp=2,virtual=2,steps=4", ("megatron",)),
        ("dp=2,zero,bf16,steps=4", ("megatron", "essentials", "checkpoints")),
        ("tp=2,sp,bf16,warmup=3,steps=6", ("essentials", "communication", "checkpoints")),
        ("dp=2,overlap,steps=6", ("data_parallel", "communication")),
        ("bf16,recompute,steps=4", ("megatron",)),
    ],
)
def test_packs_are_silent(layout: str, packs: tuple[str, ...], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    specs = [f"specs/{pack}" for pack in packs]
    ended = done("-m", "tspec", "run", *specs, "--report", str(report), "--", TRAIN, layout)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert json.loads(report.read_text()) == []
    assert "internal error" not in ended.stderr
    decided = re.search(r"([\d,]+) decided", ended.stdout)
    assert decided is not None and int(decided[1].replace(",", "")) > 100

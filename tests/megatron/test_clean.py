"""Packs say nothing of sound jobs, and decide something of each: the layouts in `sweep.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.families import family
from tests.megatron.sweep import CLEAN, LLAMA, swept

SAMPLE = {
    "fp16",
    "tp=2,sp,recompute,dropout",
    f"pp=2,virtual=2,bf16,untied,{LLAMA}",
    "dp=2,zero,fp16",
    "tp=2,sp,experts=4,etp=2",
}
"""Each kind of parallelism and precision."""


@pytest.mark.gloo
@pytest.mark.parametrize("layout", family(CLEAN, SAMPLE))
def test_packs_are_silent(layout: str, tmp_path: Path) -> None:
    found = swept(layout, tmp_path)
    assert found.findings == ()
    assert found.decided > 1000

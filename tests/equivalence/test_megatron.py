"""megatron-core on several ranks against one: silent as released, and named with a bug in it.

A sample runs here; `python -m tests.equivalence.megatron_table` runs all, and prints the page.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.equivalence.megatron_table import Case, judged, references
from tests.jobs import done

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600
"""Seconds; the machine may be busy."""


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    "case",
    [Case("sequence_parallel"), Case("data_parallel", "zero,bf16")],
    ids=lambda case: case.job,
)
def test_the_released_package_is_silent(case: Case, tmp_path: Path) -> None:
    outcome = judged(case, references(tmp_path)(case), tmp_path).outcome
    assert (outcome.wrong, outcome.faults) == ((), ())
    assert len(outcome.comparisons) > 560
    # The container of a stage's layers, and the optimizer's own copies of parameters.
    unplaced = {each.name.rpartition(".param.")[0] or each.name for each in outcome.unplaced}
    assert unplaced <= {"decoder", "optimizer.0"}


SAMPLE = (
    "tp=2,pp=2,virtual=2,sp,recompute,kv=2,swiglu,rms,rope,nobias,bf16",
    "dp=2,ep=2,zero,experts=4,kv=2,swiglu,rms,rope,untied,noaux",
)
"""Interleaved stages with tied embeddings and recomputation; experts over ranks."""


@pytest.mark.gloo
def test_clean_jobs_are_one_device_by_the_layouts_that_ship() -> None:
    ended = done("-m", "tests.equivalence.megatron_sweep", "--verbose", *SAMPLE)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line.split(" | ") for line in ended.stdout.splitlines() if line.startswith("| `")]
    assert [row[0].strip("| `") for row in rows] == list(SAMPLE)
    assert all(int(row[3]) > 380 for row in rows), ended.stdout  # tensors that were compared


@pytest.mark.slow
@pytest.mark.gloo
def test_the_demo_shows_the_module_that_has_the_bug() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/demo/megatron.py")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VocabParallelEmbedding, forward at tests/megatron/bugs/" in done.stdout
    page = (ROOT / "runs/demo-megatron/bug.html").read_text(encoding="utf-8")
    assert page.count("<h2>") == 4 and "embedding.word_embeddings: forward pass" in page

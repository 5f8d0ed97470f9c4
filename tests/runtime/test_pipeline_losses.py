"""The loss of a pipeline is known on its last stage, under schedules that call no `backward` too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.first_found import Found, first_found
from tests.megatron.jobs import TRAIN
from tests.native.sweep import command

RULE = """edition 2026

use std.torch

invariant loss_is_not_known {
  each step
  when loss > 0.1 and loss < 10  // else it may be the sum of an activation
  expect step == 0
  else warn
}
"""


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("script", "rank"),
    [
        pytest.param((TRAIN, "pp=2,steps=2"), 1, id="megatron"),
        pytest.param(
            *((TRAIN, "pp=2,virtual=2,steps=2"), 1),
            id="megatron interleaved",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(command("pipelines v_shaped"), 0, id="v_shaped"),
        pytest.param(command("pipelines 1f1b"), 1, id="1f1b", marks=pytest.mark.exhaustive),
    ],
)
def test_only_the_last_stage_knows_the_loss(
    script: tuple[str, ...], rank: int, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.tspec"
    rules.write_text(RULE)
    found = first_found([str(rules)], script, tmp_path / "report.json")
    assert found == Found("loss_is_not_known", 1, (rank,), "")

"""A finding on a `DTensor` says that its numbers are those of a shard, and which place its ranks have, in a run and over its recording alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs import done, run

SCRIPT = Path(__file__).with_name("tensor_parallel.py")
RULE = """edition 2026

module widths

use std.torch

/// Layers are wide.
invariant layers_are_wide {
  for p in parameters
  after optimizer.step once
  when p.name == "blocks.0.up.weight" or p.name == "blocks.0.down.bias"
  expect p.data.shape[0] > 1000
  else warn
}
"""


MESSAGE = (
    "expected p.data.shape[0] > 1000, but p.data.shape[0] = 16; "
    "blocks.0.up.weight is a shard of [32, 16] (Shard(0) over tp)"
)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_numbers_of_a_piece_are_said_to_be(tmp_path: Path) -> None:
    spec, trace, report = tmp_path / "widths.tspec", tmp_path / "run", tmp_path / "report.json"
    spec.write_text(RULE)
    job = ("--kind", "plain")
    live = run((str(spec),), SCRIPT, report, *job)
    assert [each["message"] for each in live.headlines] == [MESSAGE]
    assert "blocks.0.down.bias is a shard" not in live.stderr
    places = {"0": {"tp": 0}, "1": {"tp": 1}}
    assert [each["coordinates"] for each in live.headlines] == [places]

    made = done("-m", "tspec", "record", "-o", str(trace), "--", str(SCRIPT), *job)
    assert made.returncode == 0, made.stderr
    ended = done("-m", "tspec", "check", str(spec), "--trace", str(trace), "--report", str(report))
    [found] = json.loads(report.read_text())
    assert (found["message"], found["coordinates"]) == (MESSAGE, places)
    assert "  step 1, ranks 0, 1 (tp 0-1): blocks.0.up.weight, blocks.0.down.bias\n" in ended.stdout
    shown = done("-m", "tspec", "trace", "show", str(trace)).stdout
    assert "sharded parameters:\n  Shard(0) over tp 6 (blocks.0.up.weight of [32, 16])" in shown

"""Windows that are an instant, or a call, have the messages of their step so far."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs import tspec

JOB = Path(__file__).parents[1] / "rules" / "stages_by_hand_job.py"
"""Each of two stages receives four messages in a step, and uses them before its update."""
RULES = """edition 2026

use std.torch

invariant before_has_another_number {
  before optimizer.step
  when step > 0
  expect count(messages) != 4
  else warn
}

invariant after_has_another_number {
  after optimizer.step
  when step > 0
  expect count(messages) != 4
  else warn
}

invariant a_step_has_another_number {
  each step
  when step > 0
  expect count(messages) != 4
  else warn
}

invariant messages_are_empty {
  for m in messages
  before optimizer.step
  when present(m.received)
  expect norm(m.received) == 0
  else warn
}
"""


@pytest.mark.slow
@pytest.mark.gloo
def test_messages_before_and_after_an_update(tmp_path: Path) -> None:
    rules, report = tmp_path / "rules.tspec", tmp_path / "report.json"
    rules.write_text(RULES)
    ended = tspec(
        "run", str(rules), "--fail-on", "warning", "--report", str(report), "--", str(JOB)
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    waiting, found = json.loads(report.read_text()), set()
    while waiting:
        one = waiting.pop()
        found.add(one["rule"].rpartition(".")[2])
        waiting += one["consequences"]
    declared = [line.split()[1] for line in RULES.splitlines() if line.startswith("invariant")]
    assert found == set(declared)

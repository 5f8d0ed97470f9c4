"""Calls that a rule looks up within an update only: outside of it their tensors are not read, and the
checker of a job decides as the reference all the same.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.runtime.test_live_agreement import differences, program, recorded_and_checked
from tspec.runtime.live.source import LiveSource
from tspec.targets.compile import compile_program
from tspec.targets.load import module_of

RULES = """
invariant batches {
  during optimizer.step
  when step <= 3
  expect count(calls(forward)) == 2 and calls(forward)[0].inputs == calls(forward)[1].inputs
}
invariant sampled {
  during optimizer.step every 2 steps
  when phase == train
  expect norm(calls(forward)[0].inputs[0]) > 0
}
"""


def train(now: Counter[str]) -> None:
    """Six steps of two evaluations each, of which those of the third have different batches; a pass before each step."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=2, max_eval=2)
    for step in range(1, 7):
        evaluations = 0

        def closure() -> torch.Tensor:
            nonlocal evaluations
            evaluations += 1
            optimizer.zero_grad()
            other = step == 3 and evaluations > 1  # noqa: B023  it is called in this step
            loss: torch.Tensor = model(torch.ones(6, 4) * (2 if other else 1)).square().mean()
            loss.backward()
            return loss

        now["outside"] = step
        with torch.no_grad():
            model(torch.ones(6, 4))
        now["outside"] = 0
        optimizer.step(closure)


def test_the_job_decides_as_the_reference(tmp_path: Path) -> None:
    expected, decided, faults = recorded_and_checked(tmp_path, RULES, lambda: train(Counter()))
    assert faults == []
    assert differences(expected, decided) == {}
    assert [each[2] for each in decided.values() if each[0] == "violated"] == [3]


def test_tensors_are_read_within_open_windows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    now: Counter[str] = Counter()
    reads: Counter[bool] = Counter()
    features = LiveSource.features

    def counting(self: LiveSource, tensors: Any, names: Any) -> Any:
        reads[now["outside"] > 0] += len(tensors)
        return features(self, tensors, names)

    monkeypatch.setattr(LiveSource, "features", counting)
    found: list[Any] = []
    with module_of(compile_program(program(RULES))).install(callback=found.append):
        train(now)
    assert [each["step"] for each in found] == [3]
    assert reads[False] > 0
    assert reads[True] == 0

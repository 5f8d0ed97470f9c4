"""Calls of which no rule reads anything are counted only: the checker of a job decides as the reference all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from unittest.mock import patch

import torch
from torch import nn

from tests.runtime.test_live_agreement import Key, differences, of_recording, program
from tspec.record.destination import Destination
from tspec.record.start import recorder_of
from tspec.record.watch import watch_spec
from tspec.runtime.checker import Checker
from tspec.runtime.edges import StateSource, WatchedCall
from tspec.runtime.live import LiveJob
from tspec.runtime.results import InstanceResult
from tspec.targets.compile import compile_program
from tspec.targets.load import module_of

RULES = """
invariant matmuls {
  for c in calls(matmul)
  when autocast.enabled and autocast.dtype != float32
  expect c.output.dtype == autocast.dtype
}
invariant rectified {
  for c in calls(torch.nn.ReLU.forward)
  when step <= 2 and phase == train
  expect zeros(c.output) < numel(c.output)
}
invariant dropped { for m in models before dropout when phase == eval and m.training expect dropout.p == 0 }
invariant applied { before dropout every 3 steps when step <= 4 expect dropout.p > 0.2 }
invariant products { before optimizer.step when step <= 3 expect count(calls(matmul)) > 2 }
invariant later { after optimizer.step when step > 8 expect count(calls(dropout)) == 1 }
invariant in_a_step { each step when step <= 4 expect count(calls(torch.nn.ReLU.forward)) == 2 }
invariant in_a_pass { each microbatch when step <= 4 expect count(calls(dropout)) == 1 }
"""

WITHIN = """
invariant frozen { for m in models during forward every 2 steps when m.training expect count(calls(dropout)) == 1 }
invariant evaluated { during forward when phase == eval expect any(calls(dropout).training) }
"""


def train() -> None:
    """Ten steps, some of which have a forward pass in lower precision and one of evaluation too."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        optimizer.zero_grad()
        loss = model(torch.ones(6, 4)).square().mean()
        with torch.autocast("cpu", torch.bfloat16, enabled=step % 3 == 1):
            loss = loss + model(torch.ones(6, 4)).float().square().mean()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            with torch.no_grad():
                model(torch.ones(6, 4))


def test_a_job_decides_as_the_reference_where_calls_are_passed_over(tmp_path: Path) -> None:
    passed = check_against_reference(RULES, tmp_path)
    events = {"matmul", "dropout", "torch.nn.ReLU.forward"}
    assert {event for event, found in passed if found} == events
    assert {event for event, found in passed if not found} == events


def test_calls_are_read_within_open_windows_that_look_them_up(tmp_path: Path) -> None:
    passed = check_against_reference(WITHIN, tmp_path)
    passes = 22
    read = sum(count for (event, found), count in passed.items() if not found)
    assert passed["dropout", True] == passes - read
    assert 0 < read < passes


def check_against_reference(text: str, tmp_path: Path) -> Counter[tuple[str, bool]]:
    """The decisions of a job are those of a recording. Returns how many calls of each event it
    passed over, and how many it was asked for and read.
    """
    rules = program(text)
    spec = watch_spec(rules.vocabulary)
    recorder = recorder_of(Destination(tmp_path / "trace"), spec, "test")
    with LiveJob(spec, [recorder]):
        train()
    recorder.close()

    passed: Counter[tuple[str, bool]] = Counter()
    passes_over = Checker.passes_over

    def counted(self: Checker, call: WatchedCall, source: StateSource) -> bool:
        found = passes_over(self, call, source)
        passed[call.event, found] += 1
        return found

    seen: list[InstanceResult] = []
    hooks = module_of(compile_program(rules))
    with (
        patch.object(Checker, "passes_over", counted),
        hooks.install(observer=seen.append) as checker,
    ):
        train()
    assert checker.faults == []
    names = [rule.declared.name for rule in checker.rules]
    decided: dict[Key, tuple[str, str, int, dict[str, str]]] = {
        (names[one.rule], one.ranks, one.at, one.subjects): (
            one.verdict,
            one.reason,
            one.step,
            dict(one.values),
        )
        for one in seen
    }
    assert len(decided) == len(seen)
    assert differences(of_recording(tmp_path, text), decided) == {}
    counts = sum((Counter(rule.counts) for rule in checker.rules), Counter())
    assert counts == Counter(verdict for verdict, *_ in decided.values())
    return passed

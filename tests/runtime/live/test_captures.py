"""CUDA graphs: while one captures the script's calls, nothing is seen or read. `tests/gpu` has real ones."""

import pytest
import torch
from torch import nn

from tests.runtime.live.test_job import SPEC, Seen
from tspec.runtime.live import LiveJob


def test_calls_within_a_capture_are_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    capturing = False
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing)
    seen, said = Seen(), []
    model = nn.Linear(3, 3)
    with LiveJob(SPEC, [seen], warn=said.append):
        model(torch.ones(1, 3))
        before = len(seen.calls)
        capturing = True
        model(torch.ones(1, 3)).sum().backward()
        capturing = False
        within = len(seen.calls)
        model(torch.ones(1, 3))
    assert before == within == 1
    assert len(seen.calls) == 2
    assert not [each for each in said if "Error" in each], said

"""What the essentials read of tensors in a late step: of parameters and what goes with them, and of no inner layer.

Reading features is most of what rules cost in a job. Numbers of tensors are the same on each machine, times are not.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tspec.resolve import load
from tspec.runtime.live import LiveJob
from tspec.runtime.live.source import LiveSource
from tspec.targets.compile import compile_program
from tspec.targets.load import module_of

ESSENTIALS = Path(__file__).parents[2] / "specs" / "essentials"
SETTLED = range(31, 40)
"""Steps after those that rules look at closely, and no tenth one."""


def network(depth: int) -> nn.Module:
    """Embeddings, and residual blocks that each call six layers."""
    block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.Sequential(
        nn.Embedding(20, 16), nn.TransformerEncoder(block, depth), nn.Linear(16, 20)
    )


LINEAR = "torch.nn.functional.linear"
MODULE_CALL = "torch.nn.Module.__call__"


def reads(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[float, int, Counter[tuple[int, str]]]:
    """How many tensors are read in a late step, how many parameters the model has, and the calls seen: (step, path) -> number."""
    program = load([ESSENTIALS]).program
    assert program is not None
    hooks = module_of(compile_program(program))
    count: Counter[int] = Counter()
    step = 0
    seen: Counter[tuple[int, str]] = Counter()
    features, call = LiveSource.features, LiveJob._call

    def counting(self: LiveSource, tensors: Any, names: Any) -> Any:
        count[step] += len(tensors)
        return features(self, tensors, names)

    def looking(self: LiveJob, role: Any, fields: dict[str, Any]) -> Any:
        seen[step, role.path] += 1
        return call(self, role, fields)

    monkeypatch.setattr(LiveSource, "features", counting)
    monkeypatch.setattr(LiveJob, "_call", looking)
    torch.manual_seed(0)
    found: list[Any] = []
    with hooks.install(callback=found.append):
        model = network(depth)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for step in range(1, SETTLED.stop + 1):  # noqa: B007  the step is counted under
            tokens, labels = torch.randint(0, 20, (8, 12)), torch.randint(0, 20, (8,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(tokens).mean(1), labels).backward()
            optimizer.step()
    monkeypatch.undo()
    assert found == []
    late = sum(count[each] for each in SETTLED) / len(SETTLED)
    return late, len(list(model.parameters())), seen


@pytest.mark.slow
def test_reads_grow_with_parameters_and_not_with_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    shallow, few, _ = reads(1, monkeypatch)
    deep, many, seen = reads(4, monkeypatch)
    assert shallow > few  # the counter counts
    assert (deep - shallow) / (many - few) <= 2.1
    # Three rules look at linear layers, in the first steps or in each tenth: their calls are passed over between.
    assert seen[1, LINEAR] > 0
    assert [seen[each, LINEAR] for each in SETTLED] == [0] * len(SETTLED)
    # All rules count outermost forward passes: the calls of a model's many layers are not looked at one by one.
    assert [seen[each, MODULE_CALL] for each in SETTLED] == [1] * len(SETTLED)

"""Shape, dtype and `requires_grad` of an argument may change within a call: rules read them as of its begin."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.runtime.test_live_agreement import differences, recorded_and_checked

EVENT = f"""
event touched = call {__name__}.touched {{
  x: tensor
  many: list<tensor>
}}
"""

RULES = (
    "for c in calls(touched) expect c.x.requires_grad",
    "for c in calls(touched) expect c.x.shape[0] == 4",
    "for c in calls(touched) expect c.x.shape[1] == 2",
    "for c in calls(touched) expect c.x.dtype == float32",
    "for c in calls(touched) expect any(c.many.requires_grad)",
    "for c in calls(touched) when c.x.requires_grad expect c.x.shape[0] == 2",
    "for c in calls(touched) expect finite(c.x) and c.x.requires_grad",
    "during touched expect touched.x.requires_grad",
    "during touched expect old(touched.x.shape) == touched.x.shape and touched.x.shape[0] == 4",
    "after touched expect touched.x.requires_grad or touched.x.shape[0] == 4",
    "before touched expect touched.x.requires_grad",
    "each step expect any(calls(touched).x.requires_grad)",
)


def touched(x: torch.Tensor, many: list[torch.Tensor], step: int) -> None:
    if step % 4 == 1:
        x.requires_grad_()
    elif step % 4 == 2:
        x.resize_(2, 2)
        many[0].requires_grad_()
    elif step % 4 == 3:
        x.data = torch.ones(2, 4, dtype=torch.float64)


def train() -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).square().mean().backward()
        touched(torch.ones(4, 2), [torch.ones(2), torch.ones(3)], step)
        touched(torch.ones(2, 2, requires_grad=step % 2 == 0), [torch.ones(2)], 0)
        optimizer.step()


@pytest.mark.parametrize(
    "rules",
    [*((rule,) for rule in RULES), RULES],
    ids=lambda rules: rules[0] if len(rules) == 1 else "all",
)
def test_hooks_decide_as_the_reference_over_the_recording(
    rules: tuple[str, ...], tmp_path: Path
) -> None:
    text = EVENT + "".join(f"invariant r{n} {{ {rule} }}\n" for n, rule in enumerate(rules))
    expected, decided, faults = recorded_and_checked(tmp_path, text, train)
    assert faults == []
    assert differences(expected, decided) == {}
    assert len({key[0] for key in decided}) == len(rules)
    verdicts = {verdict for verdict, *_ in decided.values()}
    assert "unknown" not in verdicts
    assert len(rules) == 1 or {"holds", "violated", "idle"} <= verdicts

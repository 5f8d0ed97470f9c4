"""Of calls within calls of the same event only that is read which some rule reads of inner calls."""

from __future__ import annotations

import pytest

from tspec.plan.build import build
from tspec.resolve import load_text

OF_LINEAR = """invariant of_linear {
  for m in modules(class: torch.nn.Linear)
  each step
  expect count(calls(forward, module: m)) < 3
  else warn
}
"""
INPUTS = "expect distinct(calls(forward).inputs)\nelse warn\n"


@pytest.mark.parametrize(
    ("rule", "read"),
    [
        (f"before optimizer.step\n{INPUTS}", ["module"]),
        (f"each step\n{INPUTS}", ["module"]),
        ("for c in calls(forward)\nexpect finite(c.inputs)\nelse warn\n", ["module"]),
        # A window may begin within a forward pass, whose inner calls are then the outermost in it.
        (f"before dropout\n{INPUTS}", ["inputs", "module"]),
        (f"during forward\n{INPUTS}", ["inputs", "module"]),
        ("before optimizer.step\nexpect finite(forward.inputs)\nelse warn\n", ["inputs", "module"]),
        (
            "for m in modules\nduring forward(module: m)\nexpect finite(forward.inputs)\nelse warn\n",
            ["inputs", "module"],
        ),
    ],
)
def test_what_is_read_of_inner_calls(rule: str, read: list[str]) -> None:
    text = f"edition 2026\nmodule t\nuse std.torch\n{OF_LINEAR}invariant a {{\n{rule}}}\n"
    program = load_text(text).program
    assert program is not None
    plan = build(program, {})
    assert sorted(plan.kept["forward"]) == ["inputs", "module"]
    assert sorted(plan.inside.get("forward", plan.kept["forward"])) == read

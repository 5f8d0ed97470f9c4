"""In a job of one rank the contents of tensors are read for rules across ranks only where they tell which instances there are."""

from __future__ import annotations

import pytest

from tspec.plan.build import build
from tspec.resolve import load_text


@pytest.mark.parametrize(
    ("rule", "digested"),
    [
        ("across world\neach step\nexpect same([calls(forward).inputs])\n", False),
        # A filter on what the condition looks up decides nothing: the rule is idle.
        (
            "across world\neach step\nwhen any(count(calls(dropout, training: true)) > 0)\n"
            "expect same([calls(forward).inputs])\n",
            False,
        ),
        ("for c in calls(forward)\nacross world\nexpect same(c.inputs[0])\n", False),
        # One on windows decides how many instances there are.
        (
            "for m in modules\nfor c in calls(forward, module: m)\nacross world\nexpect same(c.inputs[0])\n",
            True,
        ),
        ("each step\nexpect distinct(calls(forward).inputs)\n", True),
    ],
)
def test_what_is_read_in_a_job_of_one_rank(rule: str, digested: bool) -> None:
    text = f"edition 2026\nmodule t\nuse std.torch\ninvariant a {{\n{rule}else warn\n}}\n"
    program = load_text(text).program
    assert program is not None
    plan = build(program, {})
    features, _ = plan.alone.get("forward", plan.kept["forward"])["inputs"]
    assert ("digest" in features) == digested

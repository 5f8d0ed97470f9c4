"""What findings show: the values that decided, named as the rule names them."""

import pytest

from tspec.plan.shown import reads
from tspec.resolve import load_text

HEAD = """edition 2026

module checks

use std.torch

let bound = 1e-3
let slack = 2 * ulp(float32)

"""


@pytest.mark.parametrize(
    ("clauses", "shown"),
    [
        ("each step expect loss < 1e6", ["loss"]),
        ("each step expect loss < bound", ["loss", "bound"]),
        ("each step expect loss < slack", ["loss", "slack"]),
        (
            "each step expect loss <= 3 * max(previous(loss), over: 20 steps)",
            [
                "loss",
                "max(previous(loss), over: 20 steps)",
                "3 * max(previous(loss), over: 20 steps)",
            ],
        ),
        ("each step expect finite(loss)", ["loss"]),
        ("for p in parameters each step expect numel(p.data) == 1", ["numel(p.data)"]),
        (
            "for p in parameters before optimizer.step when present(p.grad) expect p.data != p.grad",
            ["digest(p.data)", "digest(p.grad)"],
        ),
        (
            "for p in parameters during optimizer.step expect not changed(p.data)",
            ["digest(p.data)", "old(digest(p.data))"],
        ),
        (
            "for p in parameters after optimizer.step expect p in models.parameters",
            ["models.parameters"],
        ),
        (
            "for p in parameters across world after optimizer.step"
            " expect spread(norm(p.data)) <= slack * max(norm(p.data))",
            ["norm(p.data)", "spread(norm(p.data))", "slack * max(norm(p.data))"],
        ),
    ],
)
def test_values_are_named_as_the_rule_names_them(clauses: str, shown: list[str]) -> None:
    for word in ("across ", "each ", "before ", "during ", "after ", "when ", "expect "):
        clauses = clauses.replace(f" {word}", f"\n  {word}")
    loaded = load_text(f"{HEAD}invariant checked {{\n  {clauses}\n  else warn\n}}\n")
    assert loaded.program is not None, loaded.diagnostics
    [rule] = loaded.program.rules
    assert [each.text for each in reads(rule)] == shown

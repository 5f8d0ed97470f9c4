"""Calls of modules that no rule reads are not watched."""

from __future__ import annotations

from tspec.plan.build import build
from tspec.resolve import load_text
from tspec.targets.watched import watched

HEAD = "edition 2026\n\nmodule t\n\nuse std.torch\n\n"
LINEAR, NORM = "torch.nn.Linear", "torch.nn.LayerNorm"
OF_LINEAR = f"""invariant linear {{
  for m in modules(class: {LINEAR})
  during forward(module: m)
  expect finite(forward.output)
  else warn
}}
"""
COUNTED = f"""invariant counted {{
  for m in modules(class: [{LINEAR}, {NORM}])
  each step
  expect count(calls(forward, module: m)) < 3
  else warn
}}
"""
ANY = """invariant any_call {
  for c in calls(forward)
  expect finite(c.output)
  else warn
}
"""


def receivers(*invariants: str) -> tuple[str, ...]:
    """The classes whose forward passes are watched; none: all."""
    program = load_text(HEAD + "\n".join(invariants)).program
    assert program is not None
    [found] = [
        each.receivers
        for each in watched(program.vocabulary, build(program, {})).events
        if each.name == "forward"
    ]
    return found


def test_calls_are_watched_on_the_classes_that_rules_filter_by() -> None:
    assert receivers(OF_LINEAR) == (LINEAR,)
    assert receivers(OF_LINEAR, COUNTED) == (NORM, LINEAR)


def test_a_rule_on_any_call_watches_all() -> None:
    assert receivers(OF_LINEAR, ANY) == ()

"""Rules with `once` that choose their subjects in every way: a checker of jobs that rests decides all that the reference does."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from tests.check.agreement import differences
from tests.check.jobs import job, random_shape
from tests.check.steady import steady
from tests.check.strategies import spec
from tspec.check import replayed
from tspec.check.interpret import interpret
from tspec.resolve import load_text

RULES = (
    """for m in modules(class: torch.nn.Module)
  for p in m.parameters
  before update once""",
    """for p in modules(class: torch.nn.Linear).parameters
  for q in modules.parameters
  each step once""",
    """for p in parameters
  for q in parameters
  after update once""",
    """for m in modules
  before forward(module: m) once""",
    """for m in modules
  for p in m.parameters
  after forward(module: m) once""",
    """for m in modules
  for p in m.parameters
  across dp
  before update once""",
    """for p in modules(class: torch.nn.Module).parameters
  across p.ranks
  each microbatch once""",
    """for p in parameters(requires_grad: true)
  for m in modules
  each epoch once""",
    """for m in modules
  for p in m.parameters
  before update(lr: 0.5) once""",
    """across dp
  before update once""",
)
CLAIMS = ("expect step < 2", "when step > 1\n  expect step != 3")


@pytest.mark.parametrize("choice", RULES)
def test_a_rule_that_rests_misses_nothing(choice: str) -> None:
    program = load_text(spec([f"  {choice}\n  {claim}" for claim in CLAIMS])).program
    assert program is not None
    as_in_jobs = partial(replayed.check, vocabulary=program.vocabulary)
    decided = 0
    for number in range(20):
        trace = steady(job(random_shape(Random(f"once {number}"))))
        assert differences(program.rules, trace, as_in_jobs) == []
        decided += len(interpret(program.rules, trace).decided)
    assert decided

"""The cost of a rule in one step, on average over a long run: memory reads and collectives.

A pass is one read of the memory of all parameters. Reads of activations depend on the model and are
not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from tspec.builtin.features import FEATURES
from tspec.lint.steps import are_true_at, of_the_step
from tspec.plan.reads import SubjectField, reads_of
from tspec.resolve.program.rules import Rule

BYTES = 4_000_000_000
"""The bytes of a billion float32 parameters: messages give the cost of a pass over these."""

STEADY = range(10_001, 11_001)
"""Steps of a long run over which conditions on the step are averaged."""

_PASSES = {**{row.name: row.passes for row in FEATURES.values()}, "@copy": 2.0}
# As measured for eager digests of eight million float32 on one core.

_COPIES = {"parameter": 1.0, "state": 2.0}
"""The memory of all subjects of a kind, relative to the parameters; Adam keeps two moments."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one step. `reads`: the features that are computed, by column."""

    passes: float
    collectives: float
    reads: tuple[SubjectField, ...]

    @property
    def bytes(self) -> float:
        """Memory read in a step by a model of a billion float32 parameters."""
        return self.passes * BYTES


def cost_of(rule: Rule) -> Cost:
    """The cost of one rule by itself. Values that other rules read too are computed once for all."""
    cost = of_one_look(rule)
    share = often(rule)
    return Cost(cost.passes * share, cost.collectives * share, cost.reads)


def of_one_look(rule: Rule) -> Cost:
    """The cost of a step in which the rule is evaluated."""
    columns = tuple(
        column for column in reads_of(rule).columns if column.kind in _COPIES and _weight(column)
    )
    passes = sum(_weight(column) * _COPIES[column.kind] for column in columns)
    return Cost(passes, 1.0 if rule.across else 0.0, columns)


def _weight(column: SubjectField) -> float:
    if column.frame == "first":
        return 0.0
    return sum(_PASSES.get(feature.split("/")[0], 0.0) for feature in column.features)


def often(rule: Rule) -> float:
    """The fraction of the steps of a long run in which a rule is evaluated."""
    window = rule.window
    if window.once or window.span in ("epoch", "run"):
        return 0.0
    every = window.every.count if window.every and window.every.unit == "step" else 1
    conditions = of_the_step(rule)
    if not conditions:
        return 1 / every
    steps = [step for step in STEADY if step % every == 0]
    due = [step for step in steps if are_true_at(conditions, step)]
    return len(due) / len(STEADY)

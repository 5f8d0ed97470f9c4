"""What a rule makes a job compute in one step, on average over a long run: memory read and collectives.

Passes are counted in the memory of all parameters, read once from end to end. What is read of
activations depends on the model and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne

from tspec.lint.conditions import parts_of
from tspec.plan.reads import Column, reads_of
from tspec.resolve import rules
from tspec.resolve.rules import Expr, Rule
from tspec.resolve.walk import walk

BYTES = 4_000_000_000
"""What a billion parameters in float32 take, by which a pass is shown to people."""

STEADY = range(10_001, 11_001)
"""Steps of a long run, over which conditions on the step are averaged."""

_PASSES = {
    "digest": 10.0, "std": 2.0, "norm": 1.0, "mean": 1.0, "min": 1.0, "max": 1.0, "sum": 1.0,
    "finite": 1.0, "zeros": 1.0, "@copy": 2.0,
}  # fmt: skip
# As measured for eager digests of eight million float32 on one core.

_COPIES = {"parameter": 1.0, "state": 2.0}
"""How many times as much memory as the parameters all subjects of a kind have; Adam keeps two."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one step costs. `reads` says of which columns which features are computed."""

    passes: float
    collectives: float
    reads: tuple[Column, ...]

    @property
    def bytes(self) -> float:
        """Memory read in a step by a model of a billion float32 parameters."""
        return self.passes * BYTES


def cost_of(rule: Rule) -> Cost:
    """The cost of one rule by itself; what other rules read too is computed once for all."""
    share = often(rule)
    columns = tuple(
        column for column in reads_of(rule).columns if column.kind in _COPIES and _weight(column)
    )
    passes = sum(_weight(column) * _COPIES[column.kind] for column in columns)
    return Cost(passes * share, (1.0 if rule.across else 0.0) * share, columns)


def _weight(column: Column) -> float:
    if column.frame == "first":
        return 0.0
    return sum(_PASSES.get(feature.split("/")[0], 0.0) for feature in column.features)


def often(rule: Rule) -> float:
    """In which part of the steps of a long run a rule is looked at."""
    window = rule.window
    if window.once or window.span in ("epoch", "run"):
        return 0.0
    steps = [step for step in STEADY if _is_due(rule, step)]
    return len(steps) / len(STEADY)


def _is_due(rule: Rule, step: int) -> bool:
    every = rule.window.every
    if every is not None and every.unit == "step" and step % every.count:
        return False
    return all(_value(part, step) for part in parts_of(rule) if _reads_only_the_step(part))


def _reads_only_the_step(expr: Expr) -> bool:
    found = list(walk(expr))
    named = [part for part in found if isinstance(part, rules.Ambient)]
    return bool(named) and all(
        isinstance(part, _PLAIN)
        or (isinstance(part, rules.Ambient) and part.name == "step")
        or (isinstance(part, rules.Function) and part.name == "divisible")
        for part in found
    )


_PLAIN = (
    rules.Constant, rules.Compare, rules.And, rules.Or, rules.Not, rules.Implies, rules.Arithmetic,
)  # fmt: skip
_COMPARE = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def _value(expr: Expr, step: int) -> float:
    """The value of an expression over the step alone; truth is 1 and 0."""
    match expr:
        case rules.Constant(value=value):
            return float(value)
        case rules.Ambient():
            return step
        case rules.Compare(op=op, left=left, right=right):
            return float(_COMPARE[op](_value(left, step), _value(right, step)))
        case rules.Not(value=inner):
            return 1 - _value(inner, step)
        case rules.And(items=items):
            return min(_values(items, step))
        case rules.Or(items=items):
            return max(_values(items, step))
        case rules.Implies(left=left, right=right):
            return max(1 - _value(left, step), _value(right, step))
        case rules.Function(arguments=(left, right)):
            return float(_value(left, step) % (_value(right, step) or 1) == 0)
        case rules.Arithmetic(op=op, left=left, right=right):
            return _reckoned(op, _value(left, step), _value(right, step))
    raise TypeError(type(expr).__name__)


def _values(items: tuple[Expr, ...], step: int) -> Iterator[float]:
    return (_value(item, step) for item in items)


def _reckoned(op: str, left: float, right: float) -> float:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    return left / right if right else float("nan")

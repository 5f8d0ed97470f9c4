"""The step in conditions: whether a condition reads it, and the windows that come in the first
step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import eq, ge, gt, le, lt, ne

from tspec.builtin.events import roles_of
from tspec.resolve.program import rules
from tspec.resolve.program.queries import conjuncts
from tspec.resolve.program.rules import Ambient, Expr, Rule
from tspec.resolve.program.walk import walk
from tspec.values import STEP_OF_RUN


def read_step(rule: Rule) -> Ambient | None:
    """`step`, if `when` reads it."""
    return read(rule, "step")


def read(rule: Rule, name: str) -> Ambient | None:
    """A name of the context, if `when` reads it."""
    if rule.when is None:
        return None
    for part in walk(rule.when):
        if isinstance(part, Ambient) and part.name == name:
            return part
    return None


def begins_in_the_first_step(rule: Rule) -> bool:
    """The first window of the rule is in the first step of a job."""
    window = rule.window
    if window.kind == "each":
        return window.span in ("step", "microbatch")
    return window.event is not None and any(
        roles_of(each).in_every_step for each in window.event.events
    )


# --- conditions on the step alone ---------------------------------------------------------------


def of_the_step(rule: Rule) -> list[Expr]:
    """The parts of `when` that read the step and nothing else."""
    return [part for part in conjuncts(rule.when) if _reads_only_the_step(part)]


def are_true_at(conditions: Sequence[Expr], step: int) -> bool:
    """True if conditions on the step alone are all true in one step."""
    return all(_value(part, step) for part in conditions)


def may_be_due(rule: Rule, every: int) -> bool:
    """True if a step divisible by `every` was found in which `when` can be true.

    The search is incomplete: it tries steps near the numbers in `when`.
    """
    conditions = of_the_step(rule)
    if any(part not in conditions and _reads_the_step(part) for part in conjuncts(rule.when)):
        return False
    numbers = {
        int(part.value)
        for condition in conditions
        for part in walk(condition)
        if isinstance(part, rules.Constant)
        and not isinstance(part.value, str)
        and abs(part.value) < _FAR
    }
    tried = {place // every + near for place in numbers for near in range(-2, 13)}
    return any(place >= 0 and are_true_at(conditions, place * every) for place in tried)


_FAR = 1e9
_STEPS = ("step", STEP_OF_RUN)
"""Numbers of the step, which are one and the same in a job that is not resumed."""


def _reads_the_step(expr: Expr) -> bool:
    return any(isinstance(part, Ambient) and part.name in _STEPS for part in walk(expr))


def _reads_only_the_step(expr: Expr) -> bool:
    found = list(walk(expr))
    named = [part for part in found if isinstance(part, rules.Ambient)]
    return bool(named) and all(
        isinstance(part, _PLAIN)
        or (isinstance(part, rules.Ambient) and part.name in _STEPS)
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

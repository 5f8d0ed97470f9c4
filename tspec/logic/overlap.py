"""Selects the questions worth asking. A condition whose reads occur once and have no bounds follows
from nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tspec.builtin.features import FEATURES
from tspec.builtin.folds import FOLDS
from tspec.builtin.functions import FUNCTIONS
from tspec.logic.encode import ALWAYS
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.walk import expressions

_OPERATORS = (
    rules.Constant, rules.Variable, rules.WindowCall, rules.ListDisplay, rules.Old, rules.Present,
    rules.Compare, rules.Member, rules.SameObject, rules.Arithmetic, rules.Negate, rules.Not,
    rules.And, rules.Or, rules.Implies,
)  # fmt: skip


def reads(conditions: Sequence[Expr]) -> Counter[Expr]:
    """The reads of conditions, and the number of times that each occurs."""
    return Counter(
        part
        for condition in conditions
        for part in expressions(condition)
        if not isinstance(part, _OPERATORS)
    )


def may_be_decided(conditions: Sequence[Expr], given: Mapping[str, object]) -> bool:
    """True if the conditions may be true, or false, in all situations: their reads repeat or are
    bounded.
    """
    found = reads(conditions)
    return not found or max(found.values()) > 1 or any(_bounded(each, given) for each in found)


def may_follow(part: Expr, rest: Sequence[Expr], given: Mapping[str, object]) -> bool:
    """True if a part may follow from the rest of a rule, or be constant by itself."""
    return bool(reads((part,)).keys() & reads(rest).keys()) or may_be_decided((part,), given)


def _bounded(read: Expr, given: Mapping[str, object]) -> bool:
    """True if z3 has constraints on the value of a read."""
    match read:
        case rules.Ambient(name=name):
            return name in ALWAYS or name in given
        case rules.Feature(name=name):
            return FEATURES[name].bounds is not None
        case rules.Fold(name=name):
            return FOLDS[name].bounds == "size"
        case rules.Function(name=name):
            return name == "ulp" or FUNCTIONS[name].bounds_a_number
    return False

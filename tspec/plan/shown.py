"""What a violated instance shows: the values that its claim rests on, planned once for every executor.

How a value is written says `tspec.values.show`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr, Rule
from tspec.resolve.program.text import text
from tspec.resolve.program.types import INT, holds_tensors
from tspec.resolve.program.walk import operands


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A part of a rule whose value is shown: its text, and whether each member of the group is."""

    text: str
    expr: Expr
    each_member: bool = False


def reads(rule: Rule) -> tuple[ShownValue, ...]:
    """The values on which the verdict of a rule rests, as `expect` names them, without repeats.

    Tensors are not shown, only what is read of them.
    """
    found: dict[str, ShownValue] = {}
    for expr, each_member in _claim_reads(rule.expect):
        if holds_tensors(expr.type):
            continue
        read = ShownValue(text(expr), expr, each_member)
        found.setdefault(read.text, read)
    return tuple(found.values())


def reads_of(condition: Expr) -> tuple[ShownValue, ...]:
    """The values on which one condition rests, without repeats."""
    found: dict[str, ShownValue] = {}
    for expr, each_member in _reads(condition, False):
        read = ShownValue(text(expr), expr, each_member)
        found.setdefault(read.text, read)
    return tuple(found.values())


def _claim_reads(claim: rules.Claim) -> Iterator[tuple[Expr, bool]]:
    if isinstance(claim, rules.Holds):
        yield from _reads(claim.condition, False)
    elif isinstance(claim, rules.OnlyDuring) and claim.change:
        digest = rules.Feature(INT, claim.subject.span, "digest", claim.subject)
        yield rules.Old(digest.type, digest.span, digest), False
        yield digest, False


def _reads(expr: Expr, each_member: bool) -> Iterator[tuple[Expr, bool]]:
    """The largest parts that are read and not reckoned: fields, features, folds, look-backs."""
    match expr:
        case rules.Constant() | rules.Variable():
            return
        case rules.Fold(scope="group"):
            yield from _reads(expr.value, True)
        case rules.Fold(scope="list", value=rules.ListDisplay()) | rules.Transpose():
            yield from _reads(expr.value, each_member)
        case (
            rules.ListDisplay()
            | rules.Compare()
            | rules.Member()
            | rules.SameObject()
            | rules.Arithmetic()
            | rules.Negate()
            | rules.Not()
            | rules.And()
            | rules.Or()
            | rules.Implies()
            | rules.Function()
        ):
            for part in operands(expr):
                yield from _reads(part, each_member)
        case _:
            yield expr, each_member

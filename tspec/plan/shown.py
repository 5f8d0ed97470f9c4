"""The values that a violated instance shows: those that its claim rests on, planned once for every
executor.

`tspec.values.show` writes the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from tspec.plan.events import expressions_of
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr, Rule
from tspec.resolve.program.text import finite_number, text
from tspec.resolve.program.types import INT, CallOf, Entity, holds_tensors
from tspec.resolve.program.walk import expressions, operands, transform
from tspec.source import NOWHERE, Source, Span

_NAME = re.compile(r"[^\W\d]\w*(\.\w+)*")


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A part of a rule whose value is shown: its text, and whether the value of each member of the
    group is shown.
    """

    text: str
    expr: Expr
    each_member: bool = False


def reads(rule: Rule) -> tuple[ShownValue, ...]:
    """The values that decide a rule's verdict, in the order of `expect`, without repeats.

    Tensors are not shown, only values read from them.
    """
    return _without_repeats(rule, _claim_reads(rule.expect))


def reads_of(rule: Rule, condition: Expr) -> tuple[ShownValue, ...]:
    """The values that decide one condition of a rule, without repeats."""
    return _without_repeats(rule, _reads(condition, False))


def _without_repeats(rule: Rule, found: Iterable[tuple[Expr, bool]]) -> tuple[ShownValue, ...]:
    shown: dict[str, ShownValue] = {}
    lets = _Lets.of(rule)
    for expr, each_member in found:
        named = not isinstance(expr, rules.Constant) or lets.name_of(expr) is not None
        if named and not holds_tensors(expr.type):
            read = ShownValue(lets.written(expr), expr, each_member)
            shown.setdefault(read.text, read)
    return tuple(shown.values())


@dataclass(frozen=True, slots=True)
class _Lets:
    """The names that stand in a rule's text for values of `let`s."""

    source: Source
    largest: Mapping[Span, Expr]
    """The largest expression of each span. All parts of the value of a `let` have the span of its name."""

    @classmethod
    def of(cls, rule: Rule) -> _Lets:
        largest: dict[Span, Expr] = {}
        for part in chain.from_iterable(map(expressions, expressions_of(rule))):
            largest.setdefault(part.span, part)
        return cls(rule.source, largest)

    def written(self, expr: Expr) -> str:
        """The expression as written in the rule's text; an expression that the text lacks, in the
        language's words.
        """
        name = self.name_of(expr)
        if name is not None:
            return name.name
        resolved = text(transform(expr, self.name_of))
        said = " ".join(self.source.slice(expr.span).split())
        return said if said.startswith(resolved.partition("(")[0]) else resolved

    def name_of(self, expr: Expr) -> rules.Ambient | None:
        """The name that stands in the rule's text, where the expression is the value of a `let`, and not a part of it."""
        name = self.source.slice(expr.span)
        inlined = all(part.span == expr.span for part in expressions(expr))
        if expr.span == NOWHERE or not inlined or not _NAME.fullmatch(name) or name == text(expr):
            return None
        if self.largest.get(expr.span, expr) != expr:
            return None
        return rules.Ambient(expr.type, expr.span, name)


def _claim_reads(claim: rules.Claim) -> Iterator[tuple[Expr, bool]]:
    if isinstance(claim, rules.Holds):
        yield from _reads(claim.condition, False)
    elif isinstance(claim, rules.OnlyDuring) and claim.change:
        digest = rules.Feature(INT, claim.subject.span, "digest", claim.subject)
        yield rules.Old(digest.type, digest.span, digest), False
        yield digest, False


def _reads(expr: Expr, each_member: bool) -> Iterator[tuple[Expr, bool]]:
    """The largest parts that are read and not computed (fields, features, folds, look-backs), and after
    them the sides of comparisons that are computed from them.
    """  # fmt: skip
    match expr:
        case rules.Constant() | rules.Variable(type=Entity() | CallOf()):
            return
        case rules.Compare() if (number := finite_number(expr)) is not None:
            yield from _reads(number, each_member)
        case rules.Compare(left=left, right=right):
            for side in (left, right):
                yield from _reads(side, each_member)
                if _is_bound(side):
                    yield side, each_member
        case rules.Fold(scope="group"):
            yield from _reads(expr.value, True)
        case rules.Fold(scope="list", value=rules.ListDisplay()) | rules.Transpose():
            yield from _reads(expr.value, each_member)
        case (
            rules.ListDisplay()
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


def _is_bound(side: Expr) -> bool:
    """True if a side of a comparison is a computed number, or a constant that may have a name."""
    match side:
        case rules.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case rules.Negate(value=rules.Constant()):
            return False
        case rules.Arithmetic() | rules.Negate() | rules.Function() | rules.Fold(scope="group"):
            return True
    return False

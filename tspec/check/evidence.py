"""What a violated instance shows: which parts of a rule are read values, and how a value is written.

Every executor names the same reads in the same words, so that findings do not depend on who found them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr, Rule
from tspec.resolve.program.text import text
from tspec.resolve.program.walk import operands
from tspec.trace.model import Missing, Ref, Tensor

LONGEST = 120
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class Read:
    """A part of a rule whose value is shown: its text, and whether each member of the group is."""

    text: str
    expr: Expr
    each_member: bool = False


def reads(rule: Rule) -> tuple[Read, ...]:
    """The values on which the verdict of a rule rests, as `expect` names them, without repeats."""
    found: dict[str, Read] = {}
    for expr, each_member in _claim_reads(rule.expect):
        read = Read(text(expr), expr, each_member)
        found.setdefault(read.text, read)
    return tuple(found.values())


def reads_of(condition: Expr) -> tuple[Read, ...]:
    """The values on which one condition rests, without repeats."""
    found: dict[str, Read] = {}
    for expr, each_member in _reads(condition, False):
        read = Read(text(expr), expr, each_member)
        found.setdefault(read.text, read)
    return tuple(found.values())


def _claim_reads(claim: rules.Claim) -> Iterator[tuple[Expr, bool]]:
    if isinstance(claim, rules.Holds):
        yield from _reads(claim.condition, False)
    elif isinstance(claim, rules.OnlyDuring) and claim.change:
        digest = rules.Feature(claim.subject.type, claim.subject.span, "digest", claim.subject)
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


# --- values -------------------------------------------------------------------------------------


def show(value: object) -> str:
    """A value as findings write it."""
    shown = _show(value)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _show(value: object) -> str:
    match value:
        case Missing():
            return value.value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.9g}"
        case Ref():
            return value.name
        case Tensor():
            return f"digest {value.digest}" if value.digest is not None else "a tensor"
        case tuple():
            return "[" + ", ".join(map(_show, value)) + "]"
        case frozenset():
            return "{" + ", ".join(sorted(map(_show, value))) + "}"
        case Mapping():
            return "{" + ", ".join(f"{key}: {_show(value[key])}" for key in value) + "}"
    return str(value)

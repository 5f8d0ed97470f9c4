"""The verdict of an instance in z3, from the truth of `when` and `expect`."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from tspec.logic.encode import Encoder
from tspec.logic.encoded import Encoded
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Claim, Expr, Holds, Rule
from tspec.source import NOWHERE


@dataclass(frozen=True, slots=True)
class VerdictFormulas:
    """The conditions under which an instance holds, is violated, and is idle. Otherwise it is
    unknown.
    """

    holds: z3.BoolRef
    violated: z3.BoolRef
    idle: z3.BoolRef


def condition(rule: Rule, encoder: Encoder, when: Expr | None) -> Encoded:
    """`when`, read at the start of a `during`, else at the end; without one, true."""
    if when is None:
        when = rules.Constant(types.BOOL, NOWHERE, True)
    return encoder.encode(when, start=rule.window.kind == "during")


def verdict(when: Encoded, expect: Encoded) -> VerdictFormulas:
    """idle if `when` is false; else as `expect`, if both are known."""
    return VerdictFormulas(
        holds=z3.And(when.true, expect.true),
        violated=z3.And(when.true, expect.false),
        idle=when.false,
    )


def claimed(claim: Claim, encoder: Encoder) -> Encoded | None:
    """The truth of `expect` if it is a condition."""
    return encoder.encode(claim.condition) if isinstance(claim, Holds) else None


def same_truth(first: Encoded, second: Encoded) -> z3.BoolRef:
    """Both true, both false, or both unknown."""
    return z3.And(first.true == second.true, first.false == second.false)

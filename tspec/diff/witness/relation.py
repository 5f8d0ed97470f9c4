"""The relation of two rules: whether each is violated in situations in which the other is not.

z3 proves that there is no such situation; the reference interpreter confirms one that z3 finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from tspec.check.interpret.expressions import evaluate
from tspec.check.interpret.frames import EvaluationContext
from tspec.diff.witness.simplify import is_odd, plain_situations, simpler_situations
from tspec.diff.witness.trace import earlier_windows
from tspec.diff.witness.witness import Attempt, Witness, attempt, unconfirmed
from tspec.logic.situations import Side, Situation, SituationRead
from tspec.logic.violations import RulePair
from tspec.resolve.program import rules
from tspec.resolve.program.queries import conditions
from tspec.resolve.program.rules import Expr, Rule, Vocabulary
from tspec.resolve.program.walk import walk
from tspec.trace.model import Missing

Relation = Literal["equivalent", "tightened", "loosened", "incomparable", "unknown"]

WORK = 400
"""The most windows that the interpreter decides while a witness is simplified."""

TRIES = 3
"""Situations of z3 that are tried before it is asked with IEEE arithmetic."""


@dataclass(frozen=True, slots=True)
class RuleRelation:
    """A relation, with a witness for each direction in which the rules differ. For an unknown
    relation, `bound` is the proved part.
    """

    relation: Relation
    witnesses: tuple[Witness, ...] = ()
    bound: str = ""


@dataclass(frozen=True, slots=True)
class _Direction:
    """True if a situation violates one rule only; None if that is unknown."""

    differs: bool | None
    witness: Witness | None = None


def relate(old: Rule, new: Rule, vocabulary: Vocabulary, *, shown: bool = True) -> RuleRelation:
    """Compare two rules by the situations that violate them. `shown`: simplify witnesses for a reader."""
    pairs = _Pairs(old, new, vocabulary)
    gained = _only("new", pairs, shown)
    lost = _only("old", pairs, shown)
    found = tuple(each.witness for each in (gained, lost) if each.witness is not None)
    if gained.differs is False and lost.differs is False:
        return RuleRelation("equivalent")
    if gained.differs and lost.differs is False:
        return RuleRelation("tightened", found)
    if lost.differs and gained.differs is False:
        return RuleRelation("loosened", found)
    if gained.differs and lost.differs:
        return RuleRelation("incomparable", found)
    return RuleRelation("unknown", found, _bound(gained, lost))


def _bound(gained: _Direction, lost: _Direction) -> str:
    if lost.differs is False:
        return "all that was violated still is"
    if gained.differs is False:
        return "nothing is violated that was not"
    if gained.differs:
        return "something is violated that was not"
    if lost.differs:
        return "something that was violated no longer is"
    return ""


class _Pairs:
    """The formulas of two rules, with sums left open and in IEEE arithmetic, each built when needed."""

    def __init__(self, old: Rule, new: Rule, vocabulary: Vocabulary) -> None:
        self._of = (old, new, vocabulary)

    @cached_property
    def open(self) -> RulePair:
        """Sums and products of floats may be anything that keeps the order."""
        return RulePair(*self._of)

    @cached_property
    def exact(self) -> RulePair:
        """Sums and products bit by bit."""
        return RulePair(*self._of, exact=True)


def _only(side: Side, pairs: _Pairs, shown: bool) -> _Direction:
    """Searches for a situation that violates this side's rule only: first with sums left open, then
    in IEEE arithmetic.
    """
    unsure: Witness | None = None
    for exact in (False, True):
        pair = pairs.exact if exact else pairs.open
        left_out = False
        last: Situation | None = None
        for number in range(1 if exact else TRIES):
            found = pair.only(side)
            if found.answer == "no":
                # Without the situations that no job was found for, it proves nothing.
                if left_out:
                    break
                return _Direction(False)
            if found.situation is None:
                break
            seen = attempt(pair, side, found.situation, anywhere=True)
            if seen is not None and seen.witness.confirmed:
                witness = _simplest(pair, side, found.situation, seen) if shown else seen.witness
                return _Direction(True, witness)
            by_plain_numbers = None
            if not exact and not number:
                by_plain_numbers = _with_plain_numbers(pair, side, found.situation)
            if by_plain_numbers is not None:
                return _Direction(True, _simplest(pair, side, *by_plain_numbers))
            if seen is None:
                unsure = unsure or unconfirmed(found.situation, side)
            else:
                _learn(pair, side, seen.frames)
            if seen is None or found.situation == last:
                left_out = pair.rule_out(found.situation, side)
                if not left_out:
                    break
            last = found.situation
        if not pair.open:
            break
    return _Direction(None, unsure)


def _with_plain_numbers(
    pair: RulePair, side: Side, situation: Situation
) -> tuple[Situation, Attempt] | None:
    """A situation with small numbers in which the interpreter finds a difference, or None."""
    windows = 1 + earlier_windows(tuple(pair.rules.values()))
    for candidate in islice(plain_situations(pair, situation), 3 * WORK // windows):
        seen = attempt(pair, side, candidate)
        if seen is not None and seen.witness.confirmed:
            return candidate, seen
    return None


def _simplest(pair: RulePair, side: Side, situation: Situation, seen: Attempt) -> Witness:
    """The witness with simpler values for which the interpreter still finds a difference."""
    best, shown = situation, seen
    windows = 1 + earlier_windows(tuple(pair.rules.values()))
    for change in islice(simpler_situations(pair, situation), WORK // windows):
        candidate = change(best)
        if candidate is None:
            continue
        again = attempt(pair, side, candidate, anywhere=not seen.last)
        if (
            again is not None
            and again.witness.confirmed
            and not (len(again.witness.given) > len(shown.witness.given))
        ):
            best, shown = candidate, again
    if any(is_odd(value) for value in best.reads.values()):
        # Numbers that hang together are changed together.
        plain = _with_plain_numbers(pair, side, best)
        if plain is not None and len(plain[1].witness.line) < len(shown.witness.line):
            return plain[1].witness
    return shown.witness


def _learn(pair: RulePair, side: Side, frames: Sequence[EvaluationContext]) -> None:
    """Add to the formula the IEEE results of sums and products of these values."""
    for member, frame in enumerate(frames):
        for each, rule in pair.rules.items():
            for expr in _reckoned(rule):
                for start in (False, True):
                    operands = _operands(expr)
                    moved = EvaluationContext(frame.local, frame.instance, start=start)
                    values = [evaluate(operand, moved) for operand in operands]
                    result = evaluate(expr, moved)
                    if any(isinstance(value, Missing) for value in (*values, result)):
                        continue
                    told = list(zip(operands, values, strict=True))
                    pair.learn(SituationRead(expr, start, member, each), told, result)  # type: ignore[arg-type]


def _reckoned(rule: Rule) -> Iterator[Expr]:
    for condition in conditions(rule):
        for part in walk(condition):
            if isinstance(part, rules.Arithmetic | rules.Function):
                yield part


def _operands(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, rules.Arithmetic):
        return (expr.left, expr.right)
    return expr.arguments if isinstance(expr, rules.Function) else ()

"""Asking z3: yes, no with an example, or no answer within the limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import z3

from tspec.logic.encode import Encoder
from tspec.logic.values import float_value
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.text import text

LIMIT = 2_000_000
"""z3's count of elementary steps for one question: not time, so that answers are the same everywhere."""

Answer = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """An answer. `witness`: a counterexample, as a value for each read."""

    answer: Answer
    witness: Mapping[str, str] = field(default_factory=dict)

    @property
    def yes(self) -> bool:
        """True if the claim was proved."""
        return self.answer == "yes"


class Questions:
    """Questions about conditions that share their reads."""

    def __init__(self, given: Mapping[str, bool | int | str], limit: int = LIMIT) -> None:
        self.encoder = Encoder(given)
        self.limit = limit
        self._solver = z3.Solver(ctx=self.encoder.context)
        self._told = 0

    def always(self, claim: z3.BoolRef, witness: bool = False) -> QueryResult:
        """Decides whether a formula holds in every situation; with `witness`, gives a
        counterexample.
        """
        axioms = self.encoder.axioms
        solver = self._solver
        solver.set("rlimit", self.limit)
        solver.add(*axioms[self._told :])
        self._told = len(axioms)
        solver.push()
        try:
            solver.add(z3.Not(claim))
            solver.add(*self.encoder.lemmas())
            result = solver.check()
            if result == z3.unsat:
                return QueryResult("yes")
            if result == z3.sat:
                model = solver.model() if witness else None
                return QueryResult("no", _witness(self.encoder, model) if model is not None else {})
            return QueryResult("unknown")
        finally:
            solver.pop()


def _witness(encoder: Encoder, model: z3.ModelRef) -> Mapping[str, str]:
    """The value of each read in a model, without reads of subjects and lists."""
    found: dict[str, str] = {}
    for (expr, start), leaf in encoder.leaves.items():
        if not _is(model, leaf.known):
            found[_named(expr, start)] = "absent" if _is(model, leaf.absent) else "not recorded"
        elif leaf.value.sort() not in (encoder.sorts.thing, encoder.sorts.opaque):
            found[_named(expr, start)] = _value(model.eval(leaf.value, model_completion=True))
    return found


def _named(expr: Expr, start: bool) -> str:
    return f"old({text(expr)})" if start else text(expr)


def _is(model: z3.ModelRef, condition: z3.BoolRef) -> bool:
    return bool(z3.is_true(model.eval(condition, model_completion=True)))


def _value(value: Any) -> str:
    if z3.is_true(value) or z3.is_false(value):
        return str(value).lower()
    if z3.is_string_value(value):
        return f'"{value.as_string()}"'
    if z3.is_int_value(value):
        return str(value.as_long())
    if isinstance(value, z3.FPNumRef):
        return repr(float_value(value))
    return str(value)

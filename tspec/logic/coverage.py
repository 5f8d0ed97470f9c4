"""Decides whether one of several conditions over flags and sizes of axes is always true."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from tspec.logic.questions import QueryResult, Questions
from tspec.resolve.program import types
from tspec.resolve.program.rules import Expr


def covered(conditions: Sequence[Expr]) -> QueryResult:
    """Decides whether some condition is true for all values of flags and all numbers of ranks."""
    asked = Questions({})
    met = [asked.encoder.encode(each).true for each in conditions]
    known = []
    for (read, _), leaf in asked.encoder.leaves.items():
        known.append(leaf.known)
        if read.type == types.INT:
            known.append(leaf.value >= 1)
    context = asked.encoder.context
    return asked.always(z3.Implies(z3.And(*known), z3.Or(*met, context)), witness=True)

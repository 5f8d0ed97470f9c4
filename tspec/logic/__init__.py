"""Implication, equivalence and simplification of rules. No other package calls z3.

An answer is proved or not given. Rules that z3 cannot decide within its limit are left unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tspec.logic.implied import equivalent as equivalent
from tspec.logic.implied import implies as implies
from tspec.logic.implied import removes_implied as removes_implied
from tspec.logic.questions import QueryResult as QueryResult
from tspec.logic.simplify import Note as Note
from tspec.logic.simplify import Simplified as Simplified
from tspec.logic.simplify import simplify as simplify
from tspec.resolve.program.queries import acts_as_much
from tspec.resolve.program.rules import Program


def simplify_program(
    program: Program, given: Mapping[str, bool | int | str]
) -> tuple[Program, tuple[Note, ...]]:
    """Simplify every rule, and drop those that are always idle with the given values.

    The notes name rules that can never fire and rules that others imply; these are kept.
    """
    found = [simplify(rule, given) for rule in program.rules]
    notes = [note for each in found for note in each.notes]
    left = tuple(each.rule for each in found if not each.idle)
    _, implied = removes_implied(left)
    notes += [
        Note("implied", weak, strong.qualified)
        for weak, strong in implied
        if acts_as_much(strong, weak)
    ]
    return replace(program, rules=left), tuple(notes)

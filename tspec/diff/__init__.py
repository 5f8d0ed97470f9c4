"""Semantic differences between two versions of a set of rules: `tspec diff`.

The relation of two versions of a rule compares the situations that violate them. z3 proves it over
the language's own meaning; a situation that the interpreter decided shows it.
"""

from __future__ import annotations

from tspec.diff.changes import KINDS as KINDS
from tspec.diff.changes import Changes as Changes
from tspec.diff.changes import DeclarationChange as DeclarationChange
from tspec.diff.compare import compare as compare
from tspec.diff.sides.side import Side as Side
from tspec.diff.sides.side import Unreadable as Unreadable
from tspec.diff.sides.side import load_side as load_side
from tspec.diff.witness.relation import RuleRelation as RuleRelation
from tspec.diff.witness.relation import relate as relate
from tspec.diff.witness.witness import Witness as Witness

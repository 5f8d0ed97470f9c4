"""What changed between two versions of a set of rules, and which way: `tspec diff`.

The relation of two versions of a rule is that of the situations which they call violated: proved
by z3 over the language's own meaning, and shown by a situation that the interpreter decided.
"""

from __future__ import annotations

from tspec.diff.changes import KINDS as KINDS
from tspec.diff.changes import Change as Change
from tspec.diff.changes import Changes as Changes
from tspec.diff.compare import compare as compare
from tspec.diff.sides.side import Side as Side
from tspec.diff.sides.side import Unreadable as Unreadable
from tspec.diff.sides.side import load_side as load_side
from tspec.diff.witness.relation import RuleRelation as RuleRelation
from tspec.diff.witness.relation import relate as relate
from tspec.diff.witness.witness import Witness as Witness

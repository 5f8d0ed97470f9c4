"""The clauses with which most examples of the vocabulary begin."""

from __future__ import annotations

EACH_STEP = "each step expect"
EACH_PARAMETER = "for p in parameters after optimizer.step expect"

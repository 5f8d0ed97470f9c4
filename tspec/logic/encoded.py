"""A value of a rule in z3: whether it is known, why not, and what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value: `known` if it is present; else `absent` tells absent from other reasons."""

    known: z3.BoolRef
    absent: z3.BoolRef
    value: Any

    @property
    def true(self) -> z3.BoolRef:
        """Known and true."""
        return self.value if z3.is_true(self.known) else z3.And(self.known, self.value)

    @property
    def false(self) -> z3.BoolRef:
        """Known and false."""
        wrong = z3.Not(self.value)
        return wrong if z3.is_true(self.known) else z3.And(self.known, wrong)

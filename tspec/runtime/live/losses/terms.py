"""The terms of a loss: the results of loss functions that were added up before the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tspec.runtime.live.losses.graph import made_by, nodes, operation_of, snake_case
from tspec.runtime.live.losses.marks import Mark
from tspec.runtime.live.losses.sums import ends, is_multiplied_by_zero

PASSES = 20
"""The number of updates whose terms are followed. Later losses are added up in the same way."""
TERMS = 4096
"""The number of terms that are followed at a time. A job that never calls `backward` computes more."""
WITHOUT_GRAPH = "of detached tensors"
"""Stands for the operation of a term that no graph shows."""
_NUMBER: Mark[int] = Mark("term")
"""The number of the term that a node computed."""
_ADDS = frozenset({"Add", "Sub", "Rsub", "Stack", "Cat"})


class LossTerms:
    """The results of loss functions since the last passes, and which of them passes have reached."""

    def __init__(self, before_update: Callable[[], bool]) -> None:
        self._before_update = before_update
        self._turn = 0
        self._has_passed = False
        """A pass was made in this turn."""
        self._adds_constant = False
        """A pass of this turn or the one before had a term without a graph."""
        self._open: dict[int, tuple[int, str]] = {}
        """Number of a term that no pass has reached -> the turn in which it was computed, its operation."""
        self._count = 0
        self._passes = 0
        self._all_have_zero = True
        """Each pass up to now had a term that is multiplied by zero."""

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """What the fields of loss functions and of passes call, by name."""
        return {
            "is_term": self.is_term,
            "left_out": self.left_out,
            "negated": self.negated,
            "without_weight": self.without_weight,
        }

    def is_term(self, result: Any) -> bool:
        """True if the result of a loss function has a graph. It is marked.

        One that has none although gradients are on was computed of detached tensors: no pass can reach it.
        """
        if not isinstance(result, torch.Tensor) or not torch.is_grad_enabled():
            return False
        if self._turn <= PASSES and len(self._open) < TERMS:
            if self._has_passed and not self._before_update():
                self._turn, self._has_passed = self._turn + 1, False
            self._count += 1
            _NUMBER.put(result, self._count)
            self._open[self._count] = (self._turn, made_by(result) or WITHOUT_GRAPH)
        return result.grad_fn is not None

    def left_out(self, losses: Any) -> list[str] | None:
        """The operations of earlier terms that neither the passes of their update nor this one have
        reached, if a sum had a term without a graph. None after the first updates.
        """
        if self._turn > PASSES:
            self._open.clear()
            return None
        for number in (_NUMBER.of(node) for _, node in nodes(losses)):
            if number is not None:
                self._open.pop(number, None)
        late = [each for each, (turn, _) in self._open.items() if turn < self._turn]
        found = [self._open.pop(each)[1] for each in late]
        if not self._has_passed:
            adds, self._adds_constant = self._adds_constant, False
            found = found if adds else []
        self._adds_constant = self._adds_constant or adds_constant(losses)
        self._has_passed = True
        return found

    def without_weight(self, losses: Any) -> int:
        """The number of passes up to now, if each of them had a term that is multiplied by the whole
        number zero; else 0.
        """
        self._passes += 1
        self._all_have_zero = self._all_have_zero and any(
            is_multiplied_by_zero(node) for node, _ in ends(losses, lambda _: False)
        )
        return self._passes if self._all_have_zero else 0

    def negated(self, losses: Any) -> list[str] | None:
        """The operations of the terms that a loss subtracts. None after the first updates."""
        if self._turn > PASSES:
            return None
        return sorted(
            snake_case(operation_of(node))
            for node, sign in ends(losses, _NUMBER.on)
            if sign < 0 and _NUMBER.on(node)
        )


def adds_constant(losses: Any) -> bool:
    """True if one of the last sums has a term without a graph."""
    return any(
        operation_of(node) in _ADDS and any(each is None for each, _ in node.next_functions)
        for node, _ in ends(losses, _NUMBER.on)
    )

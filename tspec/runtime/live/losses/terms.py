"""The terms of a loss: the results of loss functions that were added up before the backward pass.

A result is marked in the node of the graph that computed it. So it is found again in the graph of the
sum, and nothing is kept alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from tspec.runtime.live.losses.graph import (
    KEEPS,
    RESHAPES,
    made_by,
    nodes,
    operation_of,
    saved,
    snake_case,
)

PASSES = 20
"""The number of updates whose terms are followed. Later losses are added up in the same way."""
TERMS = 4096
"""The number of terms that are followed at a time. A job that never calls `backward` computes more."""
MARK = "tspec term"
"""The key of a term's number in the metadata of its node."""
WITHOUT_GRAPH = "of detached tensors"
"""Stands for the operation of a term that no graph shows."""
_ADDS = frozenset({"Add", "Sub", "Rsub", "Stack", "Cat"})
_CHAIN = 256
"""The number of nodes at the end of a graph that are read as sums."""
_KEEP_SIGN = (
    KEEPS | RESHAPES | {"Add", "Stack", "Cat", "Sum", "Mean", "Select", "Index", "Unbind", "Dot"}
)
_POSITIVE = frozenset({"Exp", "Sigmoid", "Softmax", "Softplus", "Pow", "Square", "Abs"})
"""Operations whose results are weights without a sign."""


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

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """What the fields of loss functions and of passes call, by name."""
        return {"is_term": self.is_term, "left_out": self.left_out, "negated": self.negated}

    def is_term(self, result: Any) -> bool:
        """True if the result of a loss function has a graph. It is marked.

        One that has none although gradients are on was computed of detached tensors: no pass can reach it.
        """
        if not isinstance(result, torch.Tensor) or not torch.is_grad_enabled():
            return False
        node: Any = result.grad_fn
        if self._turn <= PASSES and len(self._open) < TERMS:
            if self._has_passed and not self._before_update():
                self._turn, self._has_passed = self._turn + 1, False
            self._count += 1
            if node is not None:
                node.metadata[MARK] = self._count
            self._open[self._count] = (self._turn, made_by(result) or WITHOUT_GRAPH)
        return node is not None

    def left_out(self, losses: Any) -> list[str] | None:
        """The operations of earlier terms that neither the passes of their update nor this one have
        reached, if a sum had a term without a graph. None after the first updates.
        """
        if self._turn > PASSES:
            self._open.clear()
            return None
        for number in (_number(node) for _, node in nodes(losses)):
            if number is not None:
                self._open.pop(number, None)
        late = [each for each, (turn, _) in self._open.items() if turn < self._turn]
        found = [self._open.pop(each)[1] for each in late]
        if not self._has_passed:
            adds, self._adds_constant = self._adds_constant, False
            found = found if adds else []
        self._adds_constant = self._adds_constant or _adds_constant(losses)
        self._has_passed = True
        return found

    def negated(self, losses: Any) -> list[str] | None:
        """The operations of the terms that a loss subtracts. None after the first updates."""
        if self._turn > PASSES:
            return None
        return sorted(
            snake_case(operation_of(node))
            for node, sign in _ends(losses)
            if sign < 0 and _number(node) is not None
        )


def _number(node: Any) -> int | None:
    return getattr(node, "metadata", {}).get(MARK)


def _adds_constant(losses: Any) -> bool:
    """True if one of the last sums has a term without a graph."""
    return any(
        operation_of(node) in _ADDS and any(each is None for each, _ in node.next_functions)
        for node, _ in _ends(losses)
    )


def _ends(losses: Any) -> Iterator[tuple[Any, int]]:
    """The last nodes of a graph, back to the terms, each with the sign with which it counts."""
    tensors = losses if isinstance(losses, (list, tuple)) else (losses,)
    waiting = [(each.grad_fn, 1) for each in tensors if getattr(each, "grad_fn", None) is not None]
    for _ in range(_CHAIN):
        if not waiting:
            return
        node, sign = waiting.pop()
        yield node, sign
        if _number(node) is None:
            signs = _signs(node)
            waiting += [
                (following, sign * of)
                for (following, _), of in zip(node.next_functions, signs, strict=False)
                if following is not None and of
            ]


def _signs(node: Any) -> tuple[int, ...]:
    """The sign with which a node counts each of its inputs; 0 if it is not known."""
    operation, inputs = operation_of(node), [each for each, _ in node.next_functions]
    if operation in _KEEP_SIGN:
        return (1,) * len(inputs)
    if operation == "Neg":
        return (-1,)
    if operation == "Sub":
        return (1, -1)
    if operation == "Rsub":
        return (-1, 1)
    if operation == "Mul" and len(inputs) == 2:
        return (
            _sign_of(inputs[1], saved(node, "other")),
            _sign_of(inputs[0], saved(node, "self")),
        )
    if operation == "Div" and inputs:
        return (_sign_of(inputs[1] if len(inputs) > 1 else None, saved(node, "other")), 0)
    return ()


def _sign_of(factor: Any, value: torch.Tensor | None) -> int:
    """The sign of a factor: by its operation if it has a graph, else by its values; 0 if not known."""
    if factor is not None:
        return int(operation_of(factor) in _POSITIVE)
    if value is None or value.is_meta or value.is_complex() or not value.numel():
        return 0
    return int(bool((value >= 0).all())) - int(bool((value <= 0).all()))

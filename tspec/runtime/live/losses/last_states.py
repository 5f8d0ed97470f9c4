"""Finds losses that use the state of a recurrent layer after the padding of its sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.losses.graph import nodes, operation_of, signed
from tspec.runtime.live.losses.marks import Mark
from tspec.runtime.live.losses.padding import PaddingMasks

_AFTER_PADDING: Mark[dict[int, int | None]] = Mark("state after padding")
"""The numbers of a node's results that are last states, and of those that are the outputs of all places, with
the dimension of the places.
"""


class LastStates:
    """The last states, and the outputs, of recurrent layers that read padding after each sequence."""

    def __init__(self, padding: PaddingMasks) -> None:
        self._padding = padding
        self._lengths: IdentityMap[nn.Module, set[int]] = IdentityMap(set)
        """Layer -> the lengths of its sequences, padding included."""
        self._marked = False
        """A layer read padding since the last pass, in a call with a graph."""

    def ends_in_padding(self, layer: nn.Module, given: object, result: object) -> bool:
        """True if a call with a graph reads the padding after sequences, and batches have several lengths.

        `given` is `[batch, length, features]`, or `[length, batch, features]`. `result` is
        `(outputs, last states)`, which are marked in the graph. If all batches of a layer have one length, a last
        state depends on its sequence alone.
        """
        if type(given) is not torch.Tensor or given.dim() != 3 or not isinstance(result, tuple):
            return False
        outputs, states = result
        if outputs.grad_fn is None:
            return False
        places = 1 if layer.batch_first else 0
        batch, length = given.shape[1 - places], given.shape[places]
        lengths = self._lengths.of(layer)
        lengths.add(length)
        if len(lengths) == 1:
            return False
        paddings = self._padding.paddings_of(lambda each: each == batch, length)
        if not paddings or any(bool(padding[:, 0].any()) for padding in paddings):
            return False
        _mark(outputs, places)
        for state in states if isinstance(states, tuple) else (states,):
            _mark(state, None)
        self._marked = True
        return True

    def uses_state_after_padding(self, losses: Any) -> bool | None:
        """True if a loss was computed from a last state, or from the outputs at the last place alone, after
        padding. None if no layer read padding since the last pass.
        """
        if not self._marked:
            return None
        self._marked = False
        return any(_is_last(node, places) for _, node in nodes(losses) for places in _marks(node))


def _mark(result: torch.Tensor, places: int | None) -> None:
    marks = _AFTER_PADDING.of(result.grad_fn) or {}
    _AFTER_PADDING.put(result, marks | {result.output_nr: places})


def _marks(node: Any) -> Iterator[int | None]:
    """Of the marked results that an operation is given: the dimension of the places, None for a state."""
    for before, number in node.next_functions:
        marks = _AFTER_PADDING.of(before) or {}
        if number in marks:
            yield marks[number]


def _is_last(node: Any, places: int | None) -> bool:
    """An operation that is given a last state, or that selects the last of the outputs of all places."""
    if places is None:
        return True
    if operation_of(node) != "Select":
        return False
    shape = node._saved_self_sym_sizes
    last = shape[places] - 1
    return signed(node._saved_dim) % len(shape) == places and signed(node._saved_index) in (
        -1,
        last,
    )

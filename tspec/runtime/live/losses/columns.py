"""Remembers the tokens that a decoder was given one place of its sequences at a time, as in a loop over a
recurrent cell.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from tspec.runtime.live.losses.graph import first_input, operation_of, reached, saved

LONGEST = 128
"""The number of latest places of sequences that are kept until their backward pass is over."""
SHORTEST = 4
"""Shorter sequences are not compared: layers that are called for each place have them."""
ENOUGH = 16
"""Fewer tokens may agree by chance."""
_SHIFTS = (1, 0, 2)
"""The offsets between targets and tokens that are tried, in order."""
_CHAIN = 16
"""The number of operations between logits and what joins those of each place."""
_JOINS = frozenset({"Cat", "Stack"})


class TokenColumns:
    """The tokens of one place, `[batch]`, that an embedding was given in each call since the last
    backward pass, and the targets of losses of one place.
    """

    def __init__(self) -> None:
        self._given: deque[tuple[int, torch.Tensor]] = deque(maxlen=LONGEST)
        """Id of the table, and the tokens."""
        self._wanted: deque[tuple[int, torch.Tensor]] = deque(maxlen=LONGEST)
        """How many tokens the table of the latest ones had been given, and the targets."""

    def given(self, tokens: torch.Tensor, table: Any) -> None:
        """An embedding is given the tokens of one place: `[batch]`, or with a dimension of size 1."""
        self._given.append((id(table), tokens.reshape(-1)))

    def clear(self) -> None:
        """A backward pass is over."""
        self._given.clear()
        self._wanted.clear()

    def are_empty(self) -> bool:
        """True if no embedding was given one place since the last backward pass."""
        return not self._given

    def is_one_place(self, target: torch.Tensor) -> bool:
        """True if the targets may be those of the latest place."""
        return bool(self._given) and target.numel() == self._given[-1][1].numel()

    def tokens_ahead(self, target: torch.Tensor, ignored: int) -> int | None:
        """The offset of the targets, of one place or of as many as there were, relative to the tokens;
        None if they are not found in them.
        """
        columns = self._columns()
        if not columns or columns[0].device != target.device:
            return None
        if self.is_one_place(target):
            return self._ahead_so_far(columns, target, ignored)
        return self._ahead_of_all(columns, target, ignored)

    def sees_later(self, output: torch.Tensor, target: torch.Tensor, ignored: int) -> str | None:
        """`none` if the outputs for the first place are computed from no later tokens. None if the
        targets are no tokens, or the graph does not show it.
        """
        if self.tokens_ahead(target, ignored) is None:
            return None
        if self.is_one_place(target):
            return "none"  # later tokens were not given yet
        columns = self._columns()
        first = _first_of_joined(output.grad_fn)
        if first is None:
            return None
        looked_up = (
            saved(node, "indices") for node in reached([first]) if operation_of(node) == "Embedding"
        )
        later = columns[-(target.numel() // columns[-1].numel()) :][1:]
        seen = any(_is_one_of(indices, later) for indices in looked_up if indices is not None)
        return None if seen else "none"

    def _columns(self) -> list[torch.Tensor]:
        """The tokens of each place that the table of the latest ones was given, in batches of one size."""
        if not self._given:
            return []
        table, latest = self._given[-1]
        return [
            tokens
            for each, tokens in self._given
            if each == table and tokens.numel() == latest.numel()
        ]

    def _ahead_so_far(
        self, columns: list[torch.Tensor], target: torch.Tensor, ignored: int
    ) -> int | None:
        """The offset of the targets of all places so far, from losses of one place each."""
        if not self._wanted or self._wanted[-1][1] is not target:
            self._wanted.append((len(columns), target))
        for shift in _SHIFTS:
            pairs = [
                (columns[place + shift - 1], wanted.reshape(-1))
                for place, wanted in self._wanted
                if 0 < place + shift <= len(columns) and wanted.numel() == columns[-1].numel()
            ]
            if len(pairs) < SHORTEST:
                continue
            tokens, targets = map(torch.cat, zip(*pairs, strict=True))
            if are_equal(tokens, targets, ignored):
                return shift
        return None

    def _ahead_of_all(
        self, columns: list[torch.Tensor], target: torch.Tensor, ignored: int
    ) -> int | None:
        """The offset of targets of as many places as were given last."""
        batch = columns[-1].numel()
        places = target.numel() // batch if batch else 0
        if places * batch != target.numel() or not SHORTEST <= places <= len(columns):
            return None
        sequences = torch.stack(columns[-places:], 1)
        for shift in _SHIFTS:
            ahead = sequences[:, shift:].reshape(-1)
            for rows in (target.reshape(batch, places), target.reshape(places, batch).t()):
                wanted = rows[:, : places - shift].reshape(-1)
                if are_equal(ahead, wanted, ignored):
                    return shift
        return None


@torch.no_grad()
def are_equal(tokens: torch.Tensor, targets: torch.Tensor, ignored: int) -> bool:
    """True if the targets that count equal the tokens, and are not all the same."""
    counted = targets != ignored
    tokens, targets = tokens[counted], targets[counted]
    enough = targets.numel() >= ENOUGH
    return enough and torch.equal(tokens, targets) and bool(targets.min() < targets.max())


def _first_of_joined(node: Any) -> Any:
    """The node that computed the outputs of the first place: the first of several that were joined, or
    the one that was first written to a place of a tensor. None if the outputs were computed otherwise.
    """
    for _ in range(_CHAIN):
        if node is None:
            return None
        operation = operation_of(node)
        if operation in _JOINS and len(node.next_functions) >= SHORTEST:
            return first_input(node)
        if operation == "CopySlices":
            return _first_written(node)
        node = first_input(node)
    return None


def _first_written(node: Any) -> Any:
    """What was written first to a tensor that was written to one part after the other."""
    for _ in range(LONGEST):
        before, written = (each for each, _ in node.next_functions[:2])
        if before is None or operation_of(before) != "CopySlices":
            return written
        node = before
    return None


def _is_one_of(indices: torch.Tensor, columns: list[torch.Tensor]) -> bool:
    flat = indices.reshape(-1)
    return any(flat.shape == each.shape and torch.equal(flat, each) for each in columns)

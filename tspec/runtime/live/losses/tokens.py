"""Remembers the tokens that a model was given, to compare targets with them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from tspec.runtime.live.losses.columns import ENOUGH, SHORTEST, TokenColumns, are_equal
from tspec.runtime.live.sampling import only_training

LOSSES = 16
"""The number of losses with a graph that are compared with the tokens. Later ones get their targets
in the same way. Those of an evaluation may come before, in any number.
"""
_INPUTS = 8
"""The number of latest embedding inputs that are kept until their backward pass is over."""
_SHIFTS = (1, 0, 2, -1)
"""The offsets between targets and tokens that are tried, in order. An offset of 1, the next token,
has precedence.
"""


class TokenHistory:
    """The tokens that embeddings were given since the last backward pass.

    `training`: the number of the training that is under way. Each has first losses of its own.
    """

    def __init__(self, training: Callable[[], int] = only_training) -> None:
        self._training = training
        self._inputs: deque[torch.Tensor] = deque(maxlen=_INPUTS)
        self._paddings: deque[int | None] = deque(maxlen=_INPUTS)
        """For each input, the row of its embedding table that stands for padding."""
        self._masks: deque[torch.Tensor] = deque(maxlen=_INPUTS)
        """The masks that models were given, false or 0 at padding, `[batch, length]`."""
        self.columns = TokenColumns()
        """What embeddings were given one place at a time."""
        self._losses = 0
        self._counted_in = training()
        """The training whose losses are counted."""
        self._compared_a_place = False
        """A loss of one place was compared since the last backward pass. All such losses count as one."""

    def is_over(self) -> bool:
        """All losses of this training that are to be compared have been."""
        if self._losses >= LOSSES and self._training() != self._counted_in:
            self._counted_in, self._losses = self._training(), 0
        return self._losses >= LOSSES

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        """The tokens of each call, `[batch, length]` or `[length, batch]`, the oldest first."""
        return tuple(self._inputs)

    @property
    def padded(self) -> tuple[tuple[torch.Tensor, int | None], ...]:
        """The tokens of each call, and the row of its table for padding, if it has one."""
        return tuple(zip(self._inputs, self._paddings, strict=True))

    def given(self, tokens: torch.Tensor, padding: int | None = None, table: Any = None) -> None:
        """An embedding is given sequences, `[batch, length]` or `[length, batch]`, or one place of each,
        `[batch]`; the table may have a row for padding.
        """
        if type(tokens) is not torch.Tensor or tokens.is_floating_point():
            return
        if torch._C._functorch.is_functorch_wrapped_tensor(tokens):
            return  # within `vmap`, where elements cannot be read
        if tokens.dim() == 2:
            self._inputs.append(tokens)
            self._paddings.append(padding)
        if tokens.dim() == 1 or (tokens.dim() == 2 and 1 in tokens.shape):
            self.columns.given(tokens, table)

    def masked(self, arguments: Mapping[str, Any]) -> None:
        """A model is called with these keyword arguments. Integers and booleans `[batch, length]` are
        kept as masks of its tokens if their name contains `mask`.
        """
        if self.is_over():
            return
        for name, value in arguments.items():
            plain = type(value) is torch.Tensor and not value.is_floating_point()
            if "mask" in name and plain and value.dim() == 2:
                self._masks.append(value)

    def clear(self) -> None:
        """A backward pass is over: later inputs are of other tokens."""
        self._masks.clear()
        self._inputs.clear()
        self._paddings.clear()
        self.columns.clear()
        self._losses += self._compared_a_place
        self._compared_a_place = False

    def tokens_ahead(self, target: torch.Tensor, ignored: int) -> int | None:
        """The offset of the targets relative to the tokens of a sequence, from -1 to 2; 1 is the
        next token.

        All targets but those with the value `ignored` are compared. None if they are no tokens of a
        given sequence, and after the first losses. Losses without a graph do not count as such.
        """
        if self.is_over() or target.is_floating_point():
            return None
        if not self._inputs and self.columns.are_empty():
            return None
        if self.columns.is_one_place(target):
            self._compared_a_place |= torch.is_grad_enabled()
        else:
            self._losses += torch.is_grad_enabled()
        found = self.sequence_of(target, ignored)
        ahead = self.columns.tokens_ahead(target, ignored) if found is None else found[0]
        if self.is_over():
            self.clear()
        return ahead

    @torch.no_grad()
    def counted_padding(
        self, target: torch.Tensor, ignored: int, weight: torch.Tensor | None
    ) -> int | None:
        """The number of labels that count in a loss although their tokens are padding, before or
        after a sequence.

        The smallest number over all inputs with the shape of the labels, since the inputs of an
        encoder may have another padding. A model may have sorted the sequences by their length. None
        if such an input has no padding row, if there are no inputs, and after the first losses.
        Inputs of a single value, such as the token types of BERT, are no text and are left out.
        """
        if target.is_floating_point():
            return None
        counts = target != ignored
        if weight is not None:
            counts &= weight[target.clamp(min=0, max=len(weight) - 1)] != 0
        found: list[int] = []
        for tokens, padding in zip(self._inputs, self._paddings, strict=True):
            if tokens.device != target.device or tokens.numel() != target.numel():
                continue
            if padding is None:
                if _has_one_value(tokens):
                    continue
                return None
            found.extend(
                _places_of_both(_around(sequences == padding), rows)
                for sequences, rows, _ in _batch_first(tokens, counts)
            )
        return min(found, default=None)

    @torch.no_grad()
    def masked_labels(self, target: torch.Tensor, ignored: int) -> float | None:
        """The fraction of the labels of padding that count in a loss. A mask that the model was
        given is 0 at padding, and the labels are the tokens or the next ones.

        The label of the first padding after a sequence is left out, since it may stand for the end.
        None without such a mask, if it leaves fewer than 16 labels, and after the first losses.
        """
        if self.is_over() or not self._masks:
            return None
        for sequences, rows in self._pairs(target, ignored, (1, 0)):
            for mask in self._masks:
                labels = _labels_of_padding(mask, sequences, rows)
                if labels.numel() >= ENOUGH:
                    return float((labels != ignored).double().mean())
        return None

    @torch.no_grad()
    def visible_targets(self, target: torch.Tensor, ignored: int) -> float | None:
        """The fraction of the targets that count and equal the token at their own place.

        The largest fraction of all inputs with as many tokens. None if there is no such input, if
        fewer than 16 targets count, and after the first losses. None also of an autoencoder, whose
        targets are all tokens, except for padding at the ends.
        """
        found = self._visible(target, ignored)
        largest = max((part for part, _ in found), default=None)
        if largest != 1 or any(part == 1 and is_chosen for part, is_chosen in found):
            return largest
        return None

    @torch.no_grad()
    def visible_chosen(self, target: torch.Tensor, ignored: int) -> float | None:
        """The same, of labels that count at chosen places only. None where labels are left out at the ends
        of sequences alone.
        """
        found = self._visible(target, ignored)
        return max((part for part, is_chosen in found if is_chosen), default=None)

    def _visible(self, target: torch.Tensor, ignored: int) -> list[tuple[float, bool]]:
        """For each input with as many tokens: the fraction of the targets that count and equal the token at
        their own place, and whether labels are left out between others.
        """
        if self.is_over() or target.is_floating_point():
            return []
        counted = target != ignored
        if int(counted.sum()) < ENOUGH:
            return []
        return [
            (
                float((sequences == rows)[rows != ignored].double().mean()),
                not torch.equal(_around(rows == ignored), rows == ignored),
            )
            for tokens in self._inputs
            if tokens.device == target.device and tokens.numel() == target.numel()
            for sequences, rows, _ in _batch_first(tokens, target)
        ]

    @torch.no_grad()
    def sequence_of(self, target: torch.Tensor, ignored: int) -> tuple[int, torch.Tensor] | None:
        """The offset of the targets relative to a sequence of tokens, and these tokens; None if
        none fits.
        """
        found = self._found(target, ignored)
        return None if found is None else found[:2]

    @torch.no_grad()
    def order_of(self, target: torch.Tensor, ignored: int) -> tuple[int, int] | None:
        """The dimensions of such targets before they were flattened: the batch and the places of a
        sequence, or the places first. The tokens may have them in the other order.
        """
        found = self._found(target, ignored)
        if found is not None or target.is_floating_point():
            return None if found is None else found[2]
        for order in _orders(self._inputs, target.numel()):
            found = self._found(target.reshape(order).t().reshape(-1), ignored)
            if found is not None and found[2] == order[::-1]:
                return order
        return None

    def samples_and_places(self, target: torch.Tensor, ignored: int) -> list[int] | None:
        """The number of sequences and that of their places, `[batch, places]` as the tokens, if the targets are
        the next tokens. None of tokens with the places first, and after the first losses.
        """
        found = None if self.is_over() else self.next_tokens(target, ignored)
        if found is None or not any(each is found[0] for each in self._inputs):
            return None
        return list(found[0].shape)

    def next_tokens(
        self, target: torch.Tensor, ignored: int
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The tokens of a sequence and the targets, both `[batch, places]`, if these are the next
        tokens; else None.
        """
        return next(self._pairs(target, ignored, (1,)), None)

    def _pairs(
        self, target: torch.Tensor, ignored: int, shifts: Sequence[int]
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Sequences of tokens and the targets, both `[batch, places]`, where these are the tokens at
        one of the shifts.
        """
        if target.is_floating_point():
            return
        for tokens in self._inputs:
            if tokens.device == target.device:
                for sequences, rows, _ in _batch_first(tokens, target):
                    if any(_are_ahead(sequences, rows, shift, ignored) for shift in shifts):
                        yield sequences, rows

    def _found(
        self, target: torch.Tensor, ignored: int
    ) -> tuple[int, torch.Tensor, tuple[int, int]] | None:
        if target.is_floating_point():
            return None
        found = {
            shift: (tokens, order)
            for tokens in self._inputs
            if tokens.device == target.device
            for shift, order in _shifts(tokens, target, ignored)
        }
        return next(((shift, *found[shift]) for shift in _SHIFTS if shift in found), None)


def _orders(inputs: Iterable[torch.Tensor], size: int) -> Iterator[tuple[int, int]]:
    """The shapes that so many targets may have if they have a dimension of one of the inputs."""
    for batch in {each for tokens in inputs for each in tokens.shape}:
        if batch and size % batch == 0:
            yield batch, size // batch
            yield size // batch, batch


def _shifts(
    tokens: torch.Tensor, target: torch.Tensor, ignored: int
) -> Iterator[tuple[int, tuple[int, int]]]:
    """The shifts at which targets equal the tokens, if there is one target sequence per sequence of
    the batch, and the order of batch and places in the targets.
    """
    for sequences, rows, order in _batch_first(tokens, target):
        for shift in _SHIFTS:
            if _are_ahead(sequences, rows, shift, ignored):
                yield shift, order


def _are_ahead(sequences: torch.Tensor, rows: torch.Tensor, shift: int, ignored: int) -> bool:
    """True if the targets that count, `[batch, places]`, equal the tokens at a shift."""
    ahead, wanted = sequences[:, max(shift, 0) :], rows[:, max(-shift, 0) :]
    length = min(ahead.shape[1], wanted.shape[1])
    return are_equal(ahead[:, :length], wanted[:, :length], ignored)


def _has_one_value(tokens: torch.Tensor) -> bool:
    return bool((tokens == tokens.flatten()[:1]).all())


def _around(padding: torch.Tensor) -> torch.Tensor:
    """The padding positions, `[batch, length]`, before the first token of each sequence and after
    its last one.
    """
    before = padding.cumprod(1)
    after = padding.flip(1).cumprod(1).flip(1)
    return (before + after) > 0


def _labels_of_padding(
    mask: torch.Tensor, sequences: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    """The labels `[n]` of padding, but for those of the first padding after each sequence; none if the
    mask has another shape than the tokens.
    """
    by_row = mask if mask.shape == sequences.shape else mask.t()
    if by_row.shape != sequences.shape or by_row.device != rows.device:
        return rows[:0].flatten()
    padding = _around(by_row == 0)
    inner = (padding[:, :-1] & padding[:, 1:])[:, : rows.shape[1]]
    return rows[:, : inner.shape[1]][inner]


def _places_of_both(padding: torch.Tensor, counts: torch.Tensor) -> int:
    """The number of padding positions whose labels count, `[batch, length]` each.

    The smaller one of two orders of the rows: as they are, and from the least padding to the most.
    """
    by_length = (padding[padding.sum(1).argsort()], counts[counts.sum(1).argsort(descending=True)])
    return min(int((padding & counts).sum()), int((by_length[0] & by_length[1]).sum()))


def _batch_first(
    tokens: torch.Tensor, target: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor, tuple[int, int]]]:
    """Tokens and targets as `[batch, length]`, for both possible orders of dimensions, and the
    dimensions of the targets in that order.
    """
    for sequences, is_first in ((tokens, True), (tokens.t(), False)):
        batch, length = sequences.shape
        places = target.numel() // batch
        if (
            length >= SHORTEST
            and length - 2 <= places <= length
            and places * batch == target.numel()
        ):
            order = (batch, places) if is_first else (places, batch)
            rows = target.reshape(order)
            yield sequences, rows if is_first else rows.t(), order

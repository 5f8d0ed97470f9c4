"""Cross entropies by hand: labels pick from log-probabilities, as in `-logp.gather(1, labels[:, None]).mean()`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from tspec.runtime.live.losses.causality import sight_of
from tspec.runtime.live.losses.graph import (
    KEEPS,
    RESHAPES,
    first_input,
    only_input,
    operation_of,
    preceding,
    saved,
    shape_of,
    signed,
    snake_case,
)
from tspec.runtime.live.losses.padding import padding_at_end
from tspec.runtime.live.losses.sums import ends, factor_of_all
from tspec.runtime.live.losses.tokens import TokenHistory

_PICKS = frozenset({"Gather", "Index"})
_ACTIVATIONS = frozenset({"Softmax", "Sigmoid", "Relu"})
"""Operations whose results are no logits: they have lost their sign or their size."""
_NONE = -100
"""Stands for a label that is ignored: none is, since `gather` takes no such index."""
_MASKS = frozenset({"Index", "MaskedFill", "MaskedSelect", "Where"})
"""Operations that may leave out what was picked at some places."""
_EQUAL = 1e-3
"""A loss differs from the mean of what was picked by no more than this part of it."""


@dataclass(frozen=True, slots=True)
class _Pick:
    """The log-probabilities of labels, `softmax` over one dimension, picked along another or the same."""

    softmax: Any
    dim: int
    along: int
    labels: torch.Tensor
    values: torch.Tensor | None
    """All log-probabilities, if the graph has kept them."""
    mask: torch.Tensor | None = None
    """What was picked is multiplied with these numbers, one for each label; None without such a mask."""

    @property
    def counted(self) -> torch.Tensor:
        """The labels in one dimension. Those that the mask multiplies with zero are `_NONE`."""
        labels = self.labels.flatten()
        if self.mask is None or self.mask.numel() != labels.numel():
            return labels
        return labels.masked_fill(self.mask.flatten() == 0, _NONE)


def picked_across(losses: Any) -> int:
    """The number of picks along another dimension than the one over which the probabilities sum to one."""
    return sum(each.dim != each.along for each in _picks(losses))


def picked_activations(losses: Any) -> list[str]:
    """The activations whose results were taken for logits: a softmax before a softmax."""
    before = (preceding(first_input(each.softmax), KEEPS | RESHAPES) for each in _picks(losses))
    found = {operation_of(node) for node in before if node is not None}
    return sorted(map(snake_case, found & _ACTIVATIONS))


@torch.no_grad()
def picked_loss(losses: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The mean of what labels pick, negated, and these labels, if this is the whole loss, but for a
    constant factor; else None.
    """
    found, factor = list(_picks(losses)), factor_of_all(losses)
    if len(found) != 1 or factor is None:
        return None
    [pick] = found
    if pick.values is None:
        return None
    labels = pick.labels.reshape(-1)
    values = pick.values.movedim(pick.along, -1).reshape(len(labels), -1)
    mean = -values.gather(1, labels[:, None]).double().mean()
    loss = losses[0] if isinstance(losses, (list, tuple)) else losses
    if loss.numel() != 1:
        return None
    value = float(loss)
    return (mean, labels) if abs(value - factor * float(mean)) <= _EQUAL * abs(value) else None


class PickedTokens:
    """Compares the labels that pick with the tokens that embeddings were given."""

    def __init__(self, tokens: TokenHistory) -> None:
        self._tokens = tokens

    def picked_ahead(self, losses: Any) -> int | None:
        """The offset of the labels relative to the tokens of a sequence; of several picks 1, the next
        token, if one has it. None if they are no tokens of a given sequence, and after the first passes.
        """
        found = [self._tokens.tokens_ahead(each.counted, _NONE) for each in _picks(losses)]
        known = [each for each in found if each is not None]
        return 1 if 1 in known else next(iter(known), None)

    @torch.no_grad()
    def picked_padding(self, losses: Any) -> int | None:
        """The number of picked labels that count although their tokens are padding: no mask leaves
        them out.

        The smallest number over all inputs with as many tokens, since those of an encoder may have
        another padding. None if such an input has no padding row, and if there are no inputs.
        """
        found: list[int] = []
        for pick in _picks(losses, _may_leave_out):
            for tokens, padding in self._tokens.padded:
                if tokens.numel() == pick.labels.numel():
                    if padding is None:
                        return None
                    padded = (padding_at_end(each, padding) for each in (tokens, tokens.t()))
                    found.append(max(0 if each is None else int(each.sum()) for each in padded))
        return min(found, default=None)

    def picked_sees_later(self, losses: Any) -> str | None:
        """The later positions that the logits of the first such pick depend on, as `sees_later` of
        class losses has it.
        """
        for pick in _picks(losses):
            found = self._tokens.sequence_of(pick.counted, _NONE)
            logits = first_input(pick.softmax)
            if found is not None and logits is not None:
                sight = sight_of(logits, found[1])
                return None if sight is None else sight.value
        return None


def _picks(losses: Any, beyond: Callable[[Any], bool] = lambda _: False) -> Iterator[_Pick]:
    """The picks of one label for each sample or place that are terms of a loss, but for those behind a
    node that `beyond` names.
    """
    found: dict[Any, _Pick | None] = {}
    masks: dict[Any, torch.Tensor] = {}

    def is_term(node: Any) -> bool:
        found[node] = _pick(node)
        return found[node] is not None or beyond(node)

    for node, _ in ends(losses, is_term):
        mask = _mask(node)
        if mask is not None:
            masks[preceding(only_input(node), KEEPS | RESHAPES | {"Neg"})] = mask
    for node, pick in found.items():
        if pick is not None:
            yield replace(pick, mask=masks.get(node))


def _mask(node: Any) -> torch.Tensor | None:
    """The numbers with which a node multiplies what has a graph, each by another one; None of other nodes."""
    if operation_of(node) != "Mul" or only_input(node) is None:
        return None
    mask = saved(node, "other" if node.next_functions[0][0] is not None else "self")
    if type(mask) is not torch.Tensor or mask.numel() == 1:
        return None
    return mask.expand(shape_of(node))


def _may_leave_out(node: Any) -> bool:
    """True if a node may be a mask: it picks some places, or multiplies each by a number of its own."""
    if operation_of(node) not in ("Mul", "Div"):
        return operation_of(node) in _MASKS
    factors = (saved(node, "other"), saved(node, "self"))
    return all(each is not None for each, _ in node.next_functions) or any(
        each is not None and each.numel() > 1 for each in factors
    )


def _pick(node: Any) -> _Pick | None:
    if operation_of(node) not in _PICKS:
        return None
    source = preceding(first_input(node), KEEPS | {"Expand"})
    operation = "" if source is None else operation_of(source)
    if operation == "LogSoftmax":
        softmax, values = source, saved(source, "result")
    elif operation == "Log":
        softmax, values = first_input(source), None
    else:
        return None
    if softmax is None or operation_of(softmax) not in ("LogSoftmax", "Softmax"):
        return None
    shape = shape_of(softmax)
    found = _labels(node, shape)
    if found is None or type(found[0]) is not torch.Tensor:
        return None
    labels, along = found
    plain = values if type(values) is torch.Tensor else None
    return _Pick(softmax, signed(softmax._saved_dim) % len(shape), along, labels, plain)


def _labels(node: Any, shape: tuple[int, ...]) -> tuple[torch.Tensor, int] | None:
    """The labels of a node, and the dimension along which they pick; None if it picks other things."""
    if operation_of(node) == "Gather":
        labels, along = saved(node, "index"), signed(node._saved_dim) % len(shape)
        is_one = labels is not None and labels.shape == (*shape[:along], 1, *shape[along + 1 :])
        return (labels, along) if is_one and labels is not None else None
    held = node._raw_saved_indices
    if len(held) != 2 or len(shape) != 2 or any(each is None for each in held):
        return None
    if any(each.unpack_hook is not None for each in held):
        return None
    rows, labels = (each.data for each in held)
    places = torch.arange(shape[0], device=rows.device)
    return (labels, 1) if torch.equal(rows, places) and labels.shape == rows.shape else None

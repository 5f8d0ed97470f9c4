"""Weights in a checkpoint, of a model or beside it, such as an average in a plain dict, and whether
the resumed run uses them.

They were taken over if, at the start of the first backward pass, an object other than the
checkpoint holds them, or a tensor of this process has their values. Only some elements are kept
until then, so a checkpoint that the script releases is freed. An average was left behind if its
model was taken over. A model was left behind if an optimizer took over its state. The tensors later
saved in the model's place must then have existed when training began, because ranks that hold
shards of a model save the full model.
"""

from __future__ import annotations

import gc
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tspec.runtime.live.checkpoints.counts import first_tensors, tensors_of
from tspec.runtime.live.features import local_part

DEPTH = 3
"""The depth within a checkpoint to which weights are searched."""
LEAST = 16
"""The smallest number of elements of a tensor that is compared."""
SAMPLED = 3
"""The number of tensors of each state dict that are sampled, the largest first."""
ELEMENTS = 64
"""The number of elements by which a tensor is identified, spread over all of it."""
OF_A_MOMENT = re.compile(r"best|grad", re.IGNORECASE)
"""Names of weights that a run may compute anew: the best so far, gradients."""

Keys = tuple[str, ...]
Shapes = Mapping[str, torch.Size]


@dataclass(frozen=True, slots=True)
class _SampledTensor:
    """A tensor of a checkpoint: some of its elements, and the tensor as long as it lives."""

    shape: torch.Size
    elements: torch.Tensor
    tensor: weakref.ref[torch.Tensor]

    def equals(self, other: torch.Tensor) -> bool:
        """True if `other`, of the same shape, has this tensor's values in the precision of `other`."""
        found = _elements(other) if other.is_floating_point() else None
        return found is not None and torch.equal(self.elements.to(found.dtype), found)


@dataclass(frozen=True, slots=True)
class _ReadWeights:
    """A state dict of a loaded checkpoint, and the object that contained it."""

    shapes: Shapes
    sampled: tuple[_SampledTensor, ...]
    within: int


@dataclass(frozen=True, slots=True)
class _LeftWeights:
    """Weights of a checkpoint that were not taken over."""

    shapes: Shapes
    instead: Mapping[int, weakref.ref[torch.Tensor]] | None = None
    """Tensors of the model that existed when training began, by the address of their elements.

    A saved tensor has to be one of them.
    """

    def are_saved_anew(self, weights: Mapping[str, torch.Tensor]) -> bool:
        """True if other weights are saved in the place of these. A slice of a larger tensor, such
        as a flat buffer of weights, does not count.
        """
        if self.shapes != {name: tensor.shape for name, tensor in weights.items()}:
            return False
        return not any(map(_is_part, weights.values())) and (
            self.instead is None or any(map(self._was_there, weights.values()))
        )

    def _was_there(self, tensor: torch.Tensor) -> bool:
        known = (self.instead or {}).get(tensor.data_ptr())
        living = None if known is None else known()
        return living is not None and living.data_ptr() == tensor.data_ptr()


class KeptWeights:
    """Remembers the weights of the loaded checkpoints, and those that were not taken over."""

    def __init__(self) -> None:
        self._read: dict[Keys, _ReadWeights] = {}
        self._left: dict[Keys, _LeftWeights] = {}
        self._states: list[weakref.ref[torch.Tensor]] = []
        """One tensor of each optimizer state in the last file that was loaded."""
        self._goes_on = False
        """An optimizer took its state over from there."""

    def given(self, state: Any) -> None:
        """An optimizer takes a state over."""
        tensors = {id(one) for one in tensors_of(state)}
        self._goes_on |= any(id(one()) in tensors for one in self._states)

    def read(self, value: Any) -> None:
        """A checkpoint was read."""
        self._states, self._goes_on = [weakref.ref(one) for one in first_tensors(value)], False
        for keys, weights, within in _weights(value, (), DEPTH):
            shapes = {name: tensor.shape for name, tensor in weights.items()}
            self._read[keys] = _ReadWeights(shapes, tuple(_sampled(weights.values())), within)

    def trains(self, living: Callable[[], Iterable[torch.Tensor]]) -> None:
        """A backward pass begins: decide which weights of the loaded checkpoints were taken over.
        `living` finds all tensors.
        """
        if not self._read:
            return
        read, self._read = self._read, {}
        beside = {keys: _models_beside(read, keys) for keys in read if not _is_of_a_moment(keys)}
        alone = {keys for keys in beside if self._goes_on and not beside[keys]}
        looked_at = alone | {keys for keys, models in beside.items() if models}
        looked_at |= {keys for models in beside.values() for keys in models}
        looked_at = {keys for keys in looked_at if read[keys].sampled}
        if not looked_at:
            return
        taken = {keys for keys in looked_at if _is_held(read[keys])}
        shapes = {one.shape for keys in looked_at - taken for one in read[keys].sampled}
        sampled = [one for each in read.values() for one in each.sampled]
        own = {id(tensor) for one in sampled for tensor in (one.tensor(), one.elements)}
        others = [
            tensor
            for tensor in living()
            if id(tensor) not in own and not tensor.is_nested and tensor.shape in shapes
        ]
        taken |= {keys for keys in looked_at - taken if _has_equals(read[keys], others)}
        for keys in beside.keys() & looked_at:
            if keys in taken:
                self._left.pop(keys, None)
            elif beside[keys] & taken:
                self._left[keys] = _LeftWeights(read[keys].shapes)
            elif keys in alone:
                instead = {one.data_ptr(): weakref.ref(one) for one in others if _is_stored(one)}
                self._left[keys] = _LeftWeights(read[keys].shapes, instead)

    def left_behind(self, value: Any) -> list[Keys]:
        """The keys of saved weights that a loaded checkpoint contained and that were not taken over
        from it.
        """
        if not self._left:
            return []
        return [
            keys
            for keys, weights, _ in _weights(value, (), DEPTH)
            if keys in self._left and self._left[keys].are_saved_anew(weights)
        ]


def _weights(
    value: Any, keys: Keys, depth: int
) -> Iterator[tuple[Keys, Mapping[str, torch.Tensor], int]]:
    """The state dicts within an object, each with the identity of its container.

    State dicts of optimizers are skipped.
    """
    if not isinstance(value, Mapping) or not depth or "param_groups" in value:
        return
    for key, inner in value.items():
        if not isinstance(key, str) or not isinstance(inner, Mapping):
            continue
        if inner and all(isinstance(one, torch.Tensor) for one in inner.values()):
            yield (*keys, key), inner, id(value)
        else:
            yield from _weights(inner, (*keys, key), depth - 1)


def _sampled(tensors: Iterable[torch.Tensor]) -> Iterator[_SampledTensor]:
    """The largest tensors of a state dict that are not filled with one number."""
    found = [each for each in tensors if each.is_floating_point() and each.numel() >= LEAST]
    for tensor in sorted(found, key=torch.numel, reverse=True)[:SAMPLED]:
        elements = _elements(tensor)
        if elements is not None and not bool((elements == elements[0]).all()):
            yield _SampledTensor(tensor.shape, elements, weakref.ref(tensor))


def _elements(tensor: torch.Tensor) -> torch.Tensor | None:
    """Some elements of a tensor, on the CPU."""
    part = local_part(tensor)
    if part is None or not part.numel():
        return None
    flat = part.reshape(-1)
    return flat[:: -(-flat.numel() // ELEMENTS)].cpu().clone()


def _models_beside(read: Mapping[Keys, _ReadWeights], keys: Keys) -> set[Keys]:
    """Other state dicts that contain all tensors of this one. If this one is an average, they are
    its models.
    """
    shapes = read[keys].shapes.items()
    if not read[keys].sampled:
        return set()
    return {
        other for other, each in read.items() if other != keys and shapes <= each.shapes.items()
    }


def _is_of_a_moment(keys: Keys) -> bool:
    return any(map(OF_A_MOMENT.search, keys))


def _is_held(read: _ReadWeights) -> bool:
    """True if an object other than the checkpoint holds the state dict or its tensors."""
    tensor = read.sampled[0].tensor() if read.sampled else None
    if tensor is None:
        return False
    holders = [one for one in gc.get_referrers(tensor) if isinstance(one, Mapping)]
    if sys.getrefcount(tensor) > 3 or len(holders) != 1:  # the dict, this frame, and the argument
        return True
    held = holders.pop()
    within = [one for one in gc.get_referrers(held) if id(one) == read.within]
    return not within or sys.getrefcount(held) > 3


def _has_equals(read: _ReadWeights, tensors: Iterable[torch.Tensor]) -> bool:
    """True if one of the tensors equals a sampled tensor of the state dict."""
    return any(
        one.shape == tensor.shape and one.equals(tensor)
        for tensor in tensors
        for one in read.sampled
    )


def _is_stored(tensor: torch.Tensor) -> bool:
    return torch._C._has_storage(tensor) and not tensor.is_meta


def _is_part(tensor: torch.Tensor) -> bool:
    """True if the tensor is a slice of a larger storage, such as a flat buffer of weights."""
    return tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size()

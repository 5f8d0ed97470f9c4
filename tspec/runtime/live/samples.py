"""What samples layers and models are given: whether they differ, and whether a model was trained on them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence

import torch
from torch import nn

from tspec.runtime.live.features import local_part
from tspec.runtime.live.models import trains, unwrapped

CALLS = 512
"""So many inputs are looked at, of all events: later ones come from the same places."""
SAMPLES = 65_536
"""Of each model so many samples are kept, as hashes: no later ones, whatever the number of steps."""
LEAST = 8
"""Smaller batches are states of an environment or single questions."""
ELEMENTS = 64
"""A sample is known by so many of its elements, spread over all of it."""


class DataOfLayers:
    """Inputs of layers that no gradient reaches: data, and no activations."""

    def __init__(self) -> None:
        self._looked_at = 0

    def data_differ(self, value: torch.Tensor) -> bool | None:
        """Whether the rows of `[samples, ...]` differ.

        None of activations, zeros, a single sample, without a graph and after the first inputs.
        """
        if not isinstance(value, torch.Tensor) or value.requires_grad:
            return None
        if self._looked_at >= CALLS or not torch.is_grad_enabled():
            return None
        part = local_part(value)
        if part is None or part.dim() < 1 or part.shape[0] < 2:
            return None
        self._looked_at += 1
        differ = bool((part != part[:1]).any())
        return differ if differ or bool(part[0].any()) else None


class KnownSamples:
    """Which samples each model was trained on, and how many of them an evaluation gives it again."""

    def __init__(self, is_root: Callable[[nn.Module], bool]) -> None:
        self._is_root = is_root
        self._seen: dict[int, tuple[weakref.ref[nn.Module], set[int]]] = {}
        """By the id of a model, whose own `__hash__` and `__eq__` may fail."""

    def known_samples(self, module: nn.Module, inputs: Sequence[object]) -> float | None:
        """The part of the first `[samples, ...]` input of an evaluation that the model was given in training.

        None of training passes, which are kept, of parts of a model, and where it was not trained on anything yet.
        """
        model = unwrapped(module)
        if not self._is_root(model):
            return None
        learns = torch.is_grad_enabled()
        if learns is not trains(model):
            return None
        known = self._of(model)
        if len(known) >= SAMPLES if learns else not known:
            return None
        rows = _rows(inputs)
        if rows is None:
            return None
        if not learns:
            return sum(row in known for row in rows) / len(rows)
        known.update(rows[: SAMPLES - len(known)])
        return None

    def _of(self, model: nn.Module) -> set[int]:
        """The samples of a model, as long as it exists."""
        key, seen = id(model), self._seen
        held = seen.get(key)
        if held is None or held[0]() is not model:
            held = seen[key] = (weakref.ref(model, lambda _: seen.pop(key, None)), set())
        return held[1]


def _rows(inputs: Sequence[object]) -> list[int] | None:
    """A number for each sample of the first input that has some and that no gradient reaches."""
    for given in inputs:
        if not isinstance(given, torch.Tensor) or given.dim() < 2 or given.shape[0] < LEAST:
            continue
        part = None if given.requires_grad else local_part(given)
        if part is None or not part.numel():
            return None
        flat = part.flatten(1)
        some = flat[:, :: -(-flat.shape[1] // ELEMENTS)].cpu().contiguous()
        if some.dtype == torch.bfloat16:
            some = some.float()
        return [hash(row.tobytes()) for row in some.numpy()]
    return None

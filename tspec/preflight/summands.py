"""Follows partial gradients of activations from matrix products to the collectives and gradients
that use them.

The backward pass of a product with a weight sums over the weight's output dimension. Where ranks
have parts of that dimension, each has a summand of the gradient of its input. A backward pass is
linear, so the ranks may add it up at once or later, in the gradients of earlier parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from tspec.preflight.facts import Summand, adds_up

PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}
"""Operators that multiply matrices, and the place of the first one among their arguments."""
COPIES = ("clone", "_to_copy", "copy_", "wait_tensor")
OVERWRITES = ("copy_", "zero_", "fill_")
"""Operators that discard the tensor's old contents."""

Ranks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A partial sum over a dimension of a weight, and the groups that summed it, once or twice."""

    weight: str
    dimension: int
    over: frozenset[Ranks] = frozenset()
    twice: frozenset[Ranks] = frozenset()


@dataclass(frozen=True, slots=True)
class _Held:
    """The summands in a storage. `fresh` are groups that added it up, with nothing computed since. `kept` keeps its address from another one."""

    parts: frozenset[_Part]
    fresh: frozenset[Ranks]
    kept: StorageWeakRef


class Summands:
    """The summands of a rank since the last `clear`, by the storages that hold them."""

    def __init__(self) -> None:
        self._weights: dict[int, tuple[str, Tensor]] = {}
        self._held: dict[int, _Held] = {}

    def know(self, parameters: Mapping[str, Tensor]) -> None:
        """Set the parameters, by canonical name."""
        locals_ = {name: _local(each) for name, each in parameters.items()}
        self._weights = {_storage(each)._cdata: (name, each) for name, each in locals_.items()}

    def clear(self) -> None:
        """Drop all that was recorded."""
        self._held.clear()

    def made(self, func: Any, name: str, arguments: Sequence[Any], result: Any) -> None:
        """An operator has made something out of its arguments."""
        part = self._left(name, arguments)
        if part is None and not self._held:
            return
        written = list(_written(func, arguments))
        given = arguments[1:] if name in OVERWRITES else arguments
        parts, fresh = self._of(_tensors(given))
        if part is not None:
            parts = frozenset({part})
        views = {_storage(each)._cdata for each in _tensors(arguments)}
        targets = [each for each in _tensors([result]) if _storage(each)._cdata not in views]
        self._keep([*targets, *written], parts, fresh if name in COPIES else frozenset())

    def collected(self, name: str, ranks: Ranks, arguments: Sequence[Any], result: Any) -> None:
        """A collective over some ranks has been called."""
        if not self._held:
            return
        tensors = list(_tensors([*arguments, result]))
        parts, fresh = self._of(tensors)
        if adds_up(name):
            again = frozenset({ranks} & fresh)
            parts = frozenset(
                replace(each, over=each.over | {ranks}, twice=each.twice | again) for each in parts
            )
            fresh = fresh | {ranks} if "scatter" not in name else frozenset()
        self._keep(tensors, parts, fresh)

    def found(self, grads: Mapping[str, Any]) -> tuple[Summand, ...]:
        """The summands that came to the gradients of parameters."""
        return tuple(
            Summand(part.weight, part.dimension, name, *map(_sorted, (part.over, part.twice)))
            for name, grad in grads.items()
            if isinstance(grad, Tensor)
            for part in sorted(
                self._of([_local(grad)])[0], key=lambda each: (each.weight, each.dimension)
            )
        )

    def _left(self, name: str, arguments: Sequence[Any]) -> _Part | None:
        """The partial sum that a product of a backward pass leaves over a dimension of a weight;
        None if it is no product with a weight.
        """
        first = PRODUCTS.get(name)
        if first is None or torch._C._current_graph_task_id() == -1:
            return None
        left, right = arguments[first : first + 2]
        for factor, summed in ((left, -1), (right, -2)):
            weight = self._weights.get(_storage(factor)._cdata)
            if weight is None:
                continue
            stride = factor.stride(summed)
            found = [d for d in range(weight[1].dim()) if weight[1].stride(d) == stride]
            if len(found) == 1:
                return _Part(weight[0], found[0])
        return None

    def _of(self, tensors: Iterable[Tensor]) -> tuple[frozenset[_Part], frozenset[Ranks]]:
        """The summands in some tensors."""
        places = (self._held.get(_storage(each)._cdata) for each in tensors)
        held = [each for each in places if each is not None]
        parts = frozenset[_Part]().union(*(each.parts for each in held))
        return parts, frozenset[Ranks]().union(*(each.fresh for each in held))

    def _keep(
        self, tensors: Iterable[Tensor], parts: frozenset[_Part], fresh: frozenset[Ranks]
    ) -> None:
        for each in tensors:
            storage = _storage(each)
            if parts:
                kept = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                self._held[storage._cdata] = _Held(parts, fresh, kept)
            else:
                self._held.pop(storage._cdata, None)


def _local(tensor: Tensor) -> Tensor:
    local: Tensor = getattr(tensor, "_local_tensor", tensor)
    return local


def _storage(tensor: Tensor) -> Any:
    return tensor.untyped_storage()


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among some values and lists of these."""
    for each in values:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, list | tuple):
            yield from _tensors(each)


def _written(func: Any, arguments: Sequence[Any]) -> Iterator[Tensor]:
    """The arguments that an operator changes."""
    for declared, each in zip(func._schema.arguments, arguments, strict=False):
        if declared.alias_info is not None and declared.alias_info.is_write:
            yield from _tensors([each])


def _sorted(groups: Iterable[Ranks]) -> tuple[Ranks, ...]:
    return tuple(sorted(groups))

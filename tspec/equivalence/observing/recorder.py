"""Records this rank's tensors, in full or as sketches, and replaces them where the orders give
values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tspec.equivalence.cut import whole
from tspec.equivalence.observing.held import held_here
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.padding import real_part
from tspec.equivalence.progress import Progress
from tspec.equivalence.recording import NUMBERS, UPDATED, Sketched, TensorName
from tspec.equivalence.sketch import Draws, sketch
from tspec.runtime.edges import WatchedCall
from tspec.runtime.live.digest import digests

AT_ONCE = 1 << 26
"""Bytes of tensors that are digested together: each is copied for it."""


class TensorRecorder:
    """Records tensors of the kinds in the orders, and replaces those for which the orders give values."""

    def __init__(self, orders: Orders, progress: Progress) -> None:
        self._orders = orders
        self._progress = progress
        self._calls: Counter[TensorName] = Counter()
        self._draws = Draws()
        self.tensors: dict[TensorName, Tensor] = {}
        self.sketched: dict[TensorName, Sketched] = {}
        self.parts: dict[str, tuple[int, int]] = {}
        """Parameter -> which elements of its shard this rank updates, where those are not all."""

    def name(self, kind: str, name: str, call: WatchedCall) -> TensorName:
        """The name of a new tensor: the next call number of that module in the micro-batch."""
        now = call.context
        return self.numbered(TensorName(kind, name, now.step, now.microbatch))

    def numbered(self, first: TensorName) -> TensorName:
        """The next name like that of a first call."""
        self._calls[first] += 1
        return replace(first, call=self._calls[first] - 1)

    def record(self, name: TensorName, value: Any) -> None:
        """Keep the current value of a tensor."""
        self._progress.reached(str(name))
        self._keep(name, value)

    def record_all(self, values: Mapping[TensorName, Any]) -> None:
        """Record tensors that are kept from step to step. Their digests are computed together."""
        if values:
            self._progress.reached(str(next(iter(values))))
        exact: dict[TensorName, Tensor] = {}
        size = 0
        for name, value in values.items():
            held = self._keep(name, value)
            if held is not None and name in self.sketched:
                exact[name] = held
                size += held.nbytes
            if size > AT_ONCE:
                self._digest(exact)
                exact, size = {}, 0
        self._digest(exact)

    def _digest(self, exact: Mapping[TensorName, Tensor]) -> None:
        """Note the digest of each of these tensors."""
        for device in {tensor.device for tensor in exact.values()}:
            of = {name: tensor for name, tensor in exact.items() if tensor.device == device}
            for name, digest in zip(of, digests(_without_signs(of.values())).tolist(), strict=True):
                self.sketched[name] = replace(self.sketched[name], digest=digest)

    def _keep(self, name: TensorName, value: Any) -> Tensor | None:
        """Record a tensor, if it is of these kinds, and return the rank's local part."""
        is_recorded = name.kind in self._orders.kinds or name.is_first_weight
        if not is_recorded or not isinstance(value, Tensor):
            return None
        held = held_here(value)
        if held is None:
            return None
        held = self.real_part(name, held)
        sketching = self._orders.sketching
        if sketching is None or name.kind in NUMBERS or name in sketching.full:
            self.tensors[name] = held.clone()
        else:
            self._sketch(name, held)
        return held

    def _sketch(self, name: TensorName, held: Tensor) -> None:
        shape = tuple(held.shape)
        of, cut = name.name, whole(shape)
        places = self._orders.places
        if places is not None:
            if name not in places:  # it has no place
                return
            of, cut = places[name]
        part = self.parts.get(name.subject) if name.kind in UPDATED else None
        cut = cut.fitting(shape) if part is None else replace(cut, flat=part)
        self.sketched[name] = Sketched(shape, str(held.dtype).removeprefix("torch."))
        fits = cut.shape == shape  # else the comparison tells of the shape
        self.tensors[name] = sketch(of, cut, held, self._draws) if fits else held.new_empty(0)

    def rewrite(self, name: TensorName, tensor: Tensor) -> None:
        """Give a tensor the elements that the orders say; autograd does not see it."""
        wanted = self._orders.rewrites.get(name)
        held = None if wanted is None else held_here(tensor)
        if wanted is not None and held is not None and name.is_first_weight:
            wanted = wanted[tuple(map(slice, held.shape))]  # without the padding at its end
        if wanted is not None and held is not None and _is_writable(held, wanted):
            held.copy_(self._with_own_padding(name, wanted, held))

    def _with_own_padding(self, name: TensorName, wanted: Tensor, held: Tensor) -> Tensor:
        """The elements of `wanted`, with the padding of `held`: the reference has none. First
        weights have zeros as padding, as generated ones do.
        """
        _, cut = (self._orders.places or {}).get(name, ("", None))
        if cut is None or name.is_first_weight or not cut.is_padded:
            return wanted
        return torch.where(cut.positions(held.device) < 0, held, wanted.to(held))

    def real_part(self, name: TensorName, tensor: Tensor) -> Tensor:
        """A tensor without the padding that only the reference's layout tells of."""
        return real_part(self._orders.padded, name, tensor)


def _without_signs(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Replace -0.0 by 0.0. One-byte dtypes are left alone, since they have no addition."""
    return [tensor if tensor.itemsize == 1 else tensor + 0 for tensor in tensors]


def _is_writable(tensor: Tensor, wanted: Tensor) -> bool:
    """True if `tensor` has the shape of `wanted`, and no two elements share memory."""
    own = all(
        stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1
    )
    return tensor.shape == wanted.shape and own

"""The weights a job begins with: its own, generated or recorded ones."""

from __future__ import annotations

import torch
from torch import Tensor

from tspec.equivalence.cut import whole
from tspec.equivalence.generator import weights
from tspec.equivalence.observing.held import held_here, tensors
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.observing.recorder import TensorRecorder
from tspec.equivalence.observing.update_sizes import UpdateSizes
from tspec.equivalence.padding import real_shape
from tspec.equivalence.recording import TensorName
from tspec.runtime.edges import StateSource


class InitialWeights:
    """Gives parameters their weights when they are first seen, and records these.

    Parameters that are first seen after an update began, such as those of an average, or an
    optimizer's own copies, are no first weights: they are computed from others.
    """

    def __init__(self, orders: Orders, recorder: TensorRecorder, sizes: UpdateSizes) -> None:
        self._orders = orders
        self._recorder = recorder
        self._sizes = sizes
        self._known: set[str] = set()
        """Parameters whose weights were generated, or left unchanged."""
        self.filled: dict[str, float] = {}
        """Generated parameter -> the constant that the model had filled it with."""
        self._begun = False
        """An update began."""

    def set(self, source: StateSource) -> None:
        """Give parameters that were not there before their generated values, and record them."""
        found = source.fields("parameter", "data")
        if len(found) == len(self._known):
            return
        first: dict[TensorName, Tensor] = {}
        for name, tensor in found.items():
            if not isinstance(tensor, Tensor):
                continue
            held = held_here(tensor)
            if name not in self._known and held is not None:
                self._known.add(name)
                if not self._begun:
                    self._generate(name, held)
                    self._recorder.rewrite(TensorName("params", name, 0), tensor.data)
                first[TensorName("params", name, 0)] = tensor
                if self._sizes.are_followed:
                    self._sizes.begins(name, held)
        self._recorder.record_all(first)

    def update_begins(self, source: StateSource) -> None:
        """Give an optimizer's copies in higher precision the weights of their parameters.

        Megatron's optimizers make these copies when they are built, before weights are set, and
        write them back after each update. Under the distributed optimizer a rank has a copy of its
        part of a parameter only.
        """
        if self._begun:
            return
        self._begun = True
        if self._orders.seed is None and not self._orders.rewrites:
            return
        parts = tensors(source, "parameter", "shard")
        for name, main in tensors(source, "parameter", "main").items():
            part = parts.get(name)
            if part is not None and part.numel() == main.numel():
                main.detach().copy_(part.detach().view_as(main))

    def _generate(self, name: str, tensor: Tensor) -> None:
        orders = self._orders
        if orders.seed is None or not tensor.is_floating_point():
            return
        if orders.cuts is None:
            shape = tuple(tensor.shape)
            real = real_shape(orders.padded, TensorName("params", name, 0), shape)
            known, cut, mean = name, whole(shape, real), _filled_with(tensor)
            self.filled[name] = mean
        elif name in orders.cuts:
            known, cut, mean = orders.cuts[name]
        else:
            return
        cut = cut.fitting(tuple(tensor.shape))
        if cut.shape == tuple(tensor.shape):  # else the comparison tells of the shape
            with torch.no_grad():
                tensor.copy_(weights(orders.seed, known, cut, mean))


def _filled_with(tensor: Tensor) -> float:
    """The number that fills a vector; 0 if it holds several."""
    first = tensor.detach().flatten()[:1]
    return float(first) if tensor.numel() and bool((tensor == first).all()) else 0.0

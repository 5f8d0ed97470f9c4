"""Inputs of the model that are generated: tokens, labels, features."""

from __future__ import annotations

from collections import Counter

from torch import Tensor

from tspec.equivalence.cut import whole
from tspec.equivalence.generator import InputRange, numbers
from tspec.equivalence.observing.module_calls import given_to, module_around
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.observing.perturber import is_forward
from tspec.equivalence.padding import real_shape
from tspec.equivalence.recording import TensorName
from tspec.runtime.edges import WatchedCall


class GeneratedInputs:
    """Gives the inputs that the orders name their generated numbers, before they are read."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._calls: Counter[TensorName] = Counter()
        self.shapes: dict[TensorName, tuple[int, ...]] = {}
        """The shapes of the full tensors of inputs that were generated."""

    def give(self, call: WatchedCall) -> None:
        """A module, or a function that computes a loss, is called.

        A tensor gets memory of its own: the batch may share memory with the data set, or the
        tokens with the labels. What is computed from other tensors is no input of the model.
        """
        orders, now = self._orders, call.context
        if orders.seed is None or not orders.inputs or not is_forward():
            return
        for name, tensor in given_to(call).items():
            known = self._known(name, call)
            of = orders.inputs.get(known)
            if of is None or tensor.requires_grad or not _can_hold(tensor, of):
                continue
            first = TensorName(name, known, now.step, now.microbatch)
            self._calls[first] += 1
            of_call = TensorName("inputs", known, now.step, now.microbatch, self._calls[first] - 1)
            shape = tuple(tensor.shape)
            cut = whole(shape, real_shape(orders.padded, of_call, shape))
            if orders.input_cuts is not None:
                if of_call not in orders.input_cuts:
                    continue
                cut = orders.input_cuts[of_call]
            if cut.shape == shape:  # else the comparison tells of the shape
                place = (known, str(now.step), str(now.microbatch), str(of_call.call))
                tensor.data = numbers(orders.seed, place, cut, of).to(tensor.device, tensor.dtype)
                self.shapes[of_call] = cut.full

    def _known(self, name: str, call: WatchedCall) -> str:
        """The reference's name of an input: that of the model, for each of its chunks in a pipeline."""
        kind = call.fields.get("class")
        module, bracket, argument = name.partition("[")
        is_chunk = isinstance(kind, str) and module.startswith(f"{kind}.")
        if is_chunk and module_around(call) is None:
            return f"{kind}{bracket}{argument}"
        return name


def _can_hold(tensor: Tensor, of: InputRange) -> bool:
    """True for a plain tensor of whole numbers, or of floating ones, as the numbers are."""
    floating = tensor.is_floating_point()
    return type(tensor) is Tensor and (not floating and not tensor.is_complex()) == of.whole

"""Changes the inputs of the model by the size of round-off."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tspec.equivalence.cut import whole
from tspec.equivalence.generator import key, signs
from tspec.equivalence.observing.orders import Orders
from tspec.runtime.edges import WatchedCall


class Perturber:
    """Changes the first floating tensors of each outermost call, if the orders have a perturbation."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._perturbed: tuple[int, float] | None = None
        """The outermost call in which tensors were perturbed, and their coarsest epsilon."""
        self._first: dict[tuple[int, int], int] = {}
        """Step and micro-batch -> the first outermost call."""

    def perturb(self, tensors: list[Any], call: WatchedCall) -> None:
        """Change the first floating tensors of an outermost call: its inputs, or the first output.

        Under autocast, the first tensor of each coarser dtype is changed too, since later results
        are rounded to that dtype.
        """
        perturbation = self._orders.perturbation
        floating = [t for t in tensors if isinstance(t, Tensor) and t.is_floating_point()]
        if perturbation is None or not floating or not is_forward():
            return
        of, coarsest = self._perturbed or (0, 0.0)
        outermost = _outermost(call).id
        now = call.context
        first = self._first.setdefault((now.step, now.microbatch), outermost)
        if perturbation.once and first != outermost:
            return
        if of != outermost:
            coarsest = 0.0
        epsilon = max(perturbation.epsilon or torch.finfo(each.dtype).eps for each in floating)
        if epsilon <= coarsest:
            return
        self._perturbed = outermost, epsilon
        for number, tensor in enumerate(floating):
            place = f"{now.step} {now.microbatch} {number}"
            of = key(self._orders.seed or 0, "perturb", str(perturbation.sample), place)
            epsilon = perturbation.epsilon or torch.finfo(tensor.dtype).eps
            factor = 1 + epsilon * signs(of, whole(tuple(tensor.shape)).positions())
            data = tensor.data  # autograd does not see it: a view may have been saved
            data.copy_(data.double() * factor.to(data.device))


def is_forward() -> bool:
    """True if no backward pass is running, so the call is no recomputation for one."""
    return bool(torch._C._current_graph_task_id() == -1)


def _outermost(call: WatchedCall) -> WatchedCall:
    while call.parent is not None:
        call = call.parent
    return call

"""Bounds the error that gradients cause in parameters of the reference, if sketches are recorded."""

from __future__ import annotations

from torch import Tensor

from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.observing.recorder import TensorRecorder
from tspec.equivalence.recording import TensorName
from tspec.equivalence.updates import spread


class UpdateSizes:
    """Records the sizes of each parameter's update by the size of its gradient, which sketches do
    not show.
    """

    def __init__(self, orders: Orders, recorder: TensorRecorder) -> None:
        is_reference = orders.sketching is not None and orders.places is None
        self._recorder = recorder
        self.are_followed = (
            is_reference and orders.perturbation is None and "params" in orders.kinds
        )
        self._gradients: dict[str, Tensor] = {}
        self._before: dict[str, Tensor] = {}
        """Gradients and values of parameters before the update."""

    def begins(self, name: str, tensor: Tensor) -> None:
        """A parameter has these numbers before the first step."""
        self._before[name] = self._real(name, tensor).clone()

    def is_made_from(self, name: str, gradient: Tensor) -> None:
        """The next update of a parameter reads this gradient."""
        self._gradients[name] = self._real(name, gradient).clone()

    def is_made(self, name: str, step: int, tensor: Tensor) -> None:
        """A parameter has these numbers after a step."""
        before, gradient = self._before.get(name), self._gradients.get(name)
        tensor = self._real(name, tensor)
        if before is not None and gradient is not None and before.numel() == gradient.numel():
            made = spread(tensor.double() - before.double(), gradient)
            self._recorder.tensors[TensorName("updates", name, step)] = made
        self._before[name] = tensor.clone()

    def _real(self, name: str, tensor: Tensor) -> Tensor:
        """A parameter or its gradient without padding."""
        return self._recorder.real_part(TensorName("params", name, 0), tensor)

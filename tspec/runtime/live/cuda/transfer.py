"""Copies from a GPU that the process does not wait for until it uses them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tspec.runtime.transfers import NumberInTransfer
from tspec.values import Datum


class HostCopy:
    """A tensor's elements on the CPU. On a GPU, the copy waits in the current stream for what computes the tensor."""

    __slots__ = ("_event", "_held")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._event: torch.cuda.Event | None = None
        if not tensor.is_cuda:
            self._held = tensor
            return
        self._held = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        self._held.copy_(tensor, non_blocking=True)
        self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._event.record(torch.cuda.current_stream(tensor.device))

    def arrived(self) -> bool:
        """True if reading the elements does not wait."""
        return self._event is None or bool(self._event.query())  # type: ignore[no-untyped-call]

    def read(self) -> torch.Tensor:
        """The elements. It waits until they are there."""
        if self._event is not None:
            self._event.synchronize()
            self._event = None
        return self._held


def in_transfer(
    tensor: torch.Tensor, convert: Callable[[torch.Tensor], Datum]
) -> Datum | NumberInTransfer:
    """The value of a tensor with one element. If a GPU holds it, it is in transfer."""
    if not tensor.is_cuda:
        return convert(tensor)
    copy = HostCopy(tensor)
    return NumberInTransfer(copy, lambda: convert(copy.read()))

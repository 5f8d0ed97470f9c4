"""Receive buffers: the memory into which messages came, and which of it a graph may still use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tspec.runtime.live.placed import ORDINARY

MOST_BUFFERS = 256
"""The number of receive buffers that are known at a time."""


@dataclass(slots=True)
class _Buffer:
    """The memory of a receive buffer. A later buffer at its address is not mistaken for it."""

    storage: StorageWeakRef
    read: bool = False
    """A model with a graph has read it since the last backward pass."""


class ReceiveBuffers:
    """The memory of received tensors, from its receive to the next backward pass.

    A backward pass may be that of any graph. So memory is taken to be in use only until the next
    pass begins, and what a schedule that alternates passes reuses too early is not seen.
    """

    def __init__(self) -> None:
        self._buffers: dict[int, _Buffer] = {}
        """By the address of the storage object, which the weak reference keeps from being used again."""

    def receives(self, tensor: torch.Tensor) -> None:
        """A receive into a tensor was issued."""
        if len(self._buffers) < MOST_BUFFERS and (storage := _storage(tensor)) is not None:
            self._buffers[storage.cdata] = _Buffer(storage)

    def reads(self, tensors: Sequence[torch.Tensor]) -> None:
        """The loop calls a model with tensors."""
        if not self._buffers or not torch.is_grad_enabled():
            return
        for tensor in tensors:
            storage = _storage(tensor) if tensor.is_floating_point() else None
            buffer = None if storage is None else self._buffers.get(storage.cdata)
            if buffer is not None:
                buffer.read = True

    def pass_begins(self) -> None:
        """A backward pass begins."""
        self._buffers.clear()

    def overwrites_input(self, tensor: torch.Tensor) -> bool:
        """True if a model with a graph has read this memory, and no backward pass has begun since."""
        storage = _storage(tensor) if self._buffers else None
        buffer = None if storage is None else self._buffers.get(storage.cdata)
        return buffer is not None and buffer.read


def _storage(tensor: torch.Tensor) -> StorageWeakRef | None:
    """The memory of a tensor; None of tensors without memory of their own."""
    if type(tensor) not in ORDINARY or tensor.layout is not torch.strided:
        return None
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]

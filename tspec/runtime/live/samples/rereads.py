"""Samples that a data set keeps in memory, and changes while it reads them.

A sample is compared with what it was when it was read last, if it lies in the same memory. Its
memory is compared before the reading too, so a data set whose data the script changes between
passes is left out. So is one that fills one buffer with each sample in turn.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tspec.runtime.live.samples.orders import indices

KEPT = 64
"""The number of samples of each loader that are compared."""
BYTES = 1 << 24
"""The most memory of a loader's samples that is kept alive."""
DEPTH = 3
"""The depth of containers in which a sample's tensor is searched."""


@dataclass(slots=True)
class _Sample:
    """One sample as it was read last."""

    tensor: torch.Tensor
    """Its own memory: as long as it is held, no other sample gets this address."""
    values: torch.Tensor
    intact: bool = False
    """It had these values when the reading under way began."""


@dataclass(slots=True)
class _Samples:
    """The samples of one loader that are compared."""

    by_index: dict[int | str, _Sample] = field(default_factory=dict)
    by_place: dict[int, int | str] = field(default_factory=dict)
    storages: dict[int, int] = field(default_factory=dict)
    """The sizes of the storages that are kept alive."""
    shared: bool = False
    """Two samples were read from the same memory."""

    def begins(self, index: int | str) -> None:
        known = self.by_index.get(index)
        if known is not None:
            known.intact = torch.equal(known.tensor, known.values)

    def reads(self, index: int | str, tensor: torch.Tensor) -> bool:
        """A sample was read. True if the reading changed its memory."""
        known = self.by_index.get(index)
        place = tensor.data_ptr()
        if self.by_place.get(place, index) != index:
            self.shared = True
            return False
        if known is None:
            self._keep(index, tensor)
            return False
        if known.tensor.data_ptr() != place or known.tensor.shape != tensor.shape:
            return False
        changed = known.intact and not torch.equal(tensor, known.values)
        known.values = tensor.clone()
        return changed

    def _keep(self, index: int | str, tensor: torch.Tensor) -> None:
        if len(self.by_index) == KEPT:
            return
        storage = tensor.untyped_storage()
        held = self.storages | {storage.data_ptr(): storage.nbytes()}
        if sum(held.values()) <= BYTES:
            self.storages = held
            self.by_place[tensor.data_ptr()] = index
            self.by_index[index] = _Sample(tensor, tensor.clone())


class RereadSamples:
    """The samples of all loaders that read in this process."""

    def __init__(self) -> None:
        self._samples: weakref.WeakKeyDictionary[Any, _Samples] = weakref.WeakKeyDictionary()
        self._drawn: tuple[_Samples, list[int | str]] | None = None
        """What is being read."""
        self._again: bool | None = None
        """Whether the batch that was read last changed samples that had been read before."""

    def draws(self, loader: Any, index: Any) -> None:
        """The samples of a batch are about to be read."""
        samples = self._samples.setdefault(loader, _Samples())
        self._again = None
        self._drawn = None if samples.shared else (samples, list(indices(index)))
        for each in self._drawn[1] if self._drawn else ():
            samples.begins(each)

    def collates(self, batch: Any) -> None:
        """The samples of a batch were read."""
        drawn, self._drawn = self._drawn, None
        if drawn is None or not isinstance(batch, Sequence) or len(batch) != len(drawn[1]):
            return
        samples, order = drawn
        again = any(index in samples.by_index for index in order)
        changed = False
        for index, sample in zip(order, batch, strict=True):
            tensor = next(_floats(sample, DEPTH), None)
            changed |= tensor is not None and samples.reads(index, tensor)
        self._again = changed if again and not samples.shared else None

    def rewritten(self) -> bool | None:
        """Whether reading the last batch changed samples; None if none had been read before."""
        again, self._again = self._again, None
        return again


def _floats(sample: Any, depth: int) -> Iterator[torch.Tensor]:
    """The tensors of floats in a sample, and its writable arrays as tensors of their memory."""
    if isinstance(sample, torch.Tensor):
        if sample.is_floating_point() and sample.layout is torch.strided and sample.numel():
            yield sample.detach()
    elif hasattr(sample, "__array_interface__"):  # numpy's, which need not be installed
        if (
            sample.flags.writeable
            and sample.dtype.kind == "f"
            and all(s > 0 for s in sample.strides)
        ):
            yield torch.from_numpy(sample)
    elif depth and isinstance(sample, Mapping | list | tuple):
        for each in sample.values() if isinstance(sample, Mapping) else sample:
            yield from _floats(each, depth - 1)

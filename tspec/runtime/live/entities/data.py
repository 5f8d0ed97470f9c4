"""Loaders, and the batches of the step that is under way."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data import RandomSampler

from tspec.runtime.edges import Ref
from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.entities.kind import ABSENT, NOT_RECORDED, UNKNOWN, asked
from tspec.runtime.live.numbered import NumberedObjects


class LoaderSubjects:
    """Kind `loader`: `loader.0`."""

    def __init__(self) -> None:
        self.numbered = NumberedObjects("loader")
        self.trained_on: frozenset[int] = frozenset()
        """Numbers of the loaders from whose batches a backward pass was made."""

    def things(self) -> Mapping[str, Any]:
        return self.numbered.alive()

    def name_of(self, thing: Any) -> str | None:
        return self.numbered.name(thing) if self.numbered.knows(thing) else None

    def field(self, name: str, subject: str, thing: Any) -> Any:
        if name == "length":
            return length(thing)
        if name == "batch_size":
            size = asked(thing, "batch_size")
            return int(size) if isinstance(size, int) else ABSENT
        if name == "shuffled":
            return shuffled(thing)
        if name == "trained_on":
            return self.numbered.number(thing) in self.trained_on
        return UNKNOWN


def shuffled(loader: Any) -> bool:
    """Whether the loader's sampler draws at random: torch's own, or one that says so."""
    sampler = asked(loader, "sampler")
    return isinstance(sampler, RandomSampler) or asked(sampler, "shuffle") is True


def length(loader: Any) -> Any:
    """How many batches a loader gives, absent if it does not say."""
    try:
        return len(loader)
    except Exception:  # the user's data set may raise anything where it has no length
        return ABSENT


class FetchedBatch:
    """What a loader gave out at once. Its tensors are not kept alive."""

    __slots__ = ("loader", "tensors")

    def __init__(self, loader: Ref, batch: Any) -> None:
        self.loader = loader
        self.tensors = [weakref.ref(tensor) for tensor in tensors_in(batch)]


class BatchSubjects:
    """Kind `batch`: `batch.12`, of the current step."""

    def __init__(self) -> None:
        self._count = 0
        self._current: dict[str, FetchedBatch] = {}

    def add(self, loader: Ref, batch: Any) -> str:
        """A loader gave out a batch."""
        name = f"batch.{self._count}"
        self._count += 1
        self._current[name] = FetchedBatch(loader, batch)
        return name

    def step_opens(self) -> None:
        """Batches last for the step in which they were taken."""
        self._current.clear()

    def things(self) -> Mapping[str, FetchedBatch]:
        return self._current

    def name_of(self, thing: Any) -> str | None:
        return None

    def field(self, name: str, subject: str, thing: FetchedBatch) -> Any:
        if name == "loader":
            return thing.loader
        if name == "tensors":
            held = [reference() for reference in thing.tensors]
            return tuple(NOT_RECORDED if tensor is None else tensor for tensor in held)
        return ABSENT


def is_batch_tensor(value: Any) -> bool:
    """A tensor such as loaders give out."""
    return isinstance(value, torch.Tensor)

"""Loaders, and the batches of the step that is under way."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch.utils.data import RandomSampler

from tspec.runtime.edges import Ref
from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.entities.kind import ABSENT, NOT_RECORDED, UNKNOWN, asked
from tspec.runtime.live.numbered import NumberedObjects
from tspec.values import Datum


@dataclass(frozen=True, slots=True)
class LoaderFacts:
    """Facts that a loader tells about itself."""

    batch_size: Datum
    length: Datum
    samples: Datum
    weights: Datum
    shuffled: bool


_FACTS: Mapping[str, Callable[[LoaderFacts], Datum]] = {
    "batch_size": lambda facts: facts.batch_size,
    "length": lambda facts: facts.length,
    "samples": lambda facts: facts.samples,
    "weights": lambda facts: facts.weights,
    "shuffled": lambda facts: facts.shuffled,
}
"""Field of a loader -> the fact that it is."""


class LoaderSubjects:
    """Kind `loader`: `loader.0`."""

    def __init__(self) -> None:
        self.numbered = NumberedObjects("loader")
        self.trained_on: frozenset[int] = frozenset()
        """Numbers of the loaders from whose batches a backward pass was made."""
        self.trained_on_now: frozenset[int] = frozenset()
        """Those of the latest backward pass. The loaders of a run that is over are not among them."""
        self._departed: dict[int, LoaderFacts] = {}
        """Facts about deleted loaders, by number."""

    def things(self) -> Mapping[str, tuple[int, LoaderFacts | Any]]:
        """Loaders by number. A deleted loader is represented by its recorded facts."""
        there = {self.numbered.number(one): one for one in self.alive().values()}
        known = sorted((self._departed | there).items())
        return {f"{self.numbered.kind}.{number}": (number, one) for number, one in known}

    def number(self, loader: Ref) -> int:
        """The number of the loader that a reference names."""
        return int(loader.name.removeprefix(f"{self.numbered.kind}."))

    def alive(self) -> Mapping[str, Any]:
        """The loaders that the script still holds."""
        return self.numbered.alive()

    def departs(self, loader: Any) -> None:
        """A loader is about to be freed. Its facts are kept, but not its data."""
        number = self.numbered.departing(loader)
        if number is not None:
            self._departed[number] = loader_facts(loader)

    def release(self) -> None:
        """Forget the loaders that are gone."""
        self._departed.clear()

    def name_of(self, thing: Any) -> str | None:
        return self.numbered.name(thing) if self.numbered.knows(thing) else None

    def field(self, name: str, subject: str, thing: tuple[int, LoaderFacts | Any]) -> Datum:
        number, loader = thing
        if name == "trained_on":
            return number in self.trained_on
        known = loader if isinstance(loader, LoaderFacts) else loader_facts(loader)
        fact = _FACTS.get(name)
        return UNKNOWN if fact is None else fact(known)


def loader_facts(loader: Any) -> LoaderFacts:
    """The facts of a loader. Sizes and lengths are absent if it does not have them."""
    size = asked(loader, "batch_size")
    return LoaderFacts(
        int(size) if isinstance(size, int) else ABSENT,
        length(loader),
        length(asked(loader, "dataset")),
        length(asked(_sampler(loader), "weights")),
        shuffled(loader),
    )


def _sampler(loader: Any) -> Any:
    """The sampler that draws the indices of samples: the loader's, or the one inside its batch
    sampler.
    """
    return asked(asked(loader, "batch_sampler"), "sampler") or asked(loader, "sampler")


def shuffled(loader: Any) -> bool:
    """True if the loader's sampler draws at random: torch's `RandomSampler`, or one with
    `shuffle=True`.
    """
    sampler = asked(loader, "sampler")
    return isinstance(sampler, RandomSampler) or asked(sampler, "shuffle") is True


def length(held: Any) -> Any:
    """The length of a loader, a data set or weights, absent if it does not say."""
    try:
        return len(held)
    except Exception:  # the user's data set may raise anything where it has no length
        return ABSENT


class FetchedBatch:
    """One fetch of a loader. Its tensors are not kept alive."""

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

    @property
    def latest(self) -> tuple[int, Ref] | None:
        """The number and the loader of the latest batch of this step."""
        if not self._current:
            return None
        return self._count, self._current[f"batch.{self._count - 1}"].loader

    def step_opens(self) -> None:
        """Drop the batches of the step before."""
        self._current.clear()

    def things(self) -> Mapping[str, FetchedBatch]:
        return self._current

    def name_of(self, thing: Any) -> str | None:
        return None

    def field(self, name: str, subject: str, thing: FetchedBatch) -> Datum:
        if name == "loader":
            return thing.loader
        if name == "tensors":
            held = [reference() for reference in thing.tensors]
            return tuple(NOT_RECORDED if tensor is None else tensor for tensor in held)
        return ABSENT

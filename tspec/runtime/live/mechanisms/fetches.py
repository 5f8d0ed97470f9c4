"""Batches from a `DataLoader`'s iterator. A fetch is reported after it returns, as the last call
yields no batch.

Within `Join` a rank may fetch a batch, leave it unused and wait for others. So a batch is reported
there when it is used: a step that only this rank would open is none.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import dataloader, default_collate

from tspec.runtime.edges import Ref
from tspec.runtime.live.activities import Fetch
from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.entities.data import length
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.module_tree import has_parameters, trains
from tspec.runtime.live.process import PROCESS
from tspec.runtime.live.samples.orders import SampleOrders
from tspec.runtime.live.samples.passes import PassSamples
from tspec.runtime.live.samples.rereads import RereadSamples
from tspec.runtime.live.watched import Arguments, Listener, ReturnListener, Role, WatchedFunction

NEXT = "torch.utils.data.dataloader._BaseDataLoaderIter.__next__"


class DrawsListener(Listener):
    """Follows the samples that iterators draw."""

    def __init__(self, fetches: LoaderIterators) -> None:
        self._fetches = fetches

    def returned(self, token: Any, args: Arguments, kwargs: Mapping[str, Any], result: Any) -> None:
        """An iterator has drawn the samples of a batch."""
        self._fetches.draws(args[0], result)


class CollatesListener(Listener):
    """Follows the samples of which batches are made."""

    def __init__(self, rereads: RereadSamples) -> None:
        self._rereads = rereads

    def before(self, args: Arguments, kwargs: Mapping[str, Any]) -> None:
        """Samples were read, and are about to become a batch."""
        self._rereads.collates(args[0] if args else kwargs.get("batch"))


class LoaderIterators:
    """Follows the iterators of all loaders."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._passes = itertools.count(1)
        self._orders = SampleOrders()
        self._pass_samples = PassSamples() if _is_read(job, "samples_of_pass") else None
        self.rereads = RereadSamples() if _is_read(job, "rewritten") else None
        self._finds_mixtures = job.spec.computes("mixes_labels_otherwise")
        self._optimizers: frozenset[int] = frozenset()
        """The optimizers whose models have been looked for."""
        self._passed: frozenset[int] = frozenset()
        """The optimizers that existed in the pass before."""
        self._reading: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._loaders: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = (
            weakref.WeakKeyDictionary()
        )

    def begins(self, args: Arguments, kwargs: Mapping[str, Any]) -> None:
        """A pass over a loader begins: its iterator was built, or reset for another one."""
        loader = args[1] if len(args) > 1 else kwargs.get("loader")
        if loader is not None:
            self._reading[args[0]] = next(self._passes)
            self._loaders[args[0]] = weakref.ref(loader)
            living = self._job.state.optimizers.numbers()
            if not living <= self._passed:
                self._passed = living
                self._orders.forget()  # another model may be trained with the same seed
            self._orders.begins(args[0])
            if self._pass_samples is not None:
                self._pass_samples.begins(args[0])

    def draws(self, iterator: Any, index: Any) -> None:
        """The samples of a batch are drawn, perhaps ahead of the batch."""
        loader = self.loader_of(iterator)
        self._orders.draws(loader, iterator, index)
        if self.rereads is not None and isinstance(
            iterator, dataloader._SingleProcessDataLoaderIter
        ):
            self.rereads.draws(loader, index)

    def loader_of(self, iterator: Any) -> Any:
        """The loader, or the iterator itself where the loader is not known."""
        reference = self._loaders.get(iterator)
        loader = None if reference is None else reference()
        return iterator if loader is None else loader

    def fetched(self, iterator: Any, batch: Any, roles: list[Role]) -> None:
        """A batch was given out."""
        job = self._job
        report = partial(
            self._report, iterator, batch, roles, torch.is_grad_enabled(), self._mode()
        )
        if job.joins:
            job.do_before_next(report)
        else:
            report()

    def _report(
        self, iterator: Any, batch: Any, roles: list[Role], grad: bool, mode: bool | None
    ) -> None:
        job = self._job
        loader = self.loader_of(iterator)
        number = job.state.loaders.numbered.number(loader)
        rewritten = self.rereads.rewritten() if self.rereads is not None else None
        samples = None
        if self._pass_samples is not None and _of_many_ranks():
            samples = self._pass_samples.given(iterator, tensors_in(batch), length(loader))
        if iterator not in self._reading:
            self._reading[iterator] = next(self._passes)
        job.do(Fetch(number, self._reading[iterator], grad, mode))
        if self._finds_mixtures:
            job.state.mixed.fetches(batch)
        job.state.batches.add(Ref("loader", job.state.loaders.numbered.name(loader)), batch)
        for role in roles:
            values = {
                "self": iterator,
                "loader": loader,
                "same_order": self._orders.same_order(iterator),
                "rewritten": rewritten,
                "samples_of_pass": samples,
                "result": batch,
                "output": batch,
                "callable": role.path,
            }
            job.happened(role, values)

    def _mode(self) -> bool | None:
        """True if a model is in training mode; None if no model is known."""
        state = self._job.state
        living = state.optimizers.numbers()
        if self._job.place.ever_updated and not living <= self._optimizers:
            state.find_models()  # the next fold's model is in training mode, and not called yet
        self._optimizers = living
        modes = [root.module() for root in state.models.roots]
        held = [trains(module) for module in modes if module is not None and has_parameters(module)]
        return any(held) if held else None


def _of_many_ranks() -> bool:
    """True where passes of several ranks can be compared."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _is_read(job: FollowedJob, field: str) -> bool:
    """True if a field of batches is read."""
    events = (event for event in job.spec.events if NEXT in event.callables)
    return any(each.name == field for event in events for each in event.fields)


def install(job: FollowedJob) -> None:
    """Follow the creation of iterators and the batches that they yield."""
    fetches = LoaderIterators(job)
    base = dataloader._BaseDataLoaderIter
    for name in ("__init__", "_reset"):
        begins = Role(f"pass {name}", ReturnListener(fetches.begins))
        job.functions.watch_function(vars(base)[name], begins)
    job.functions.watch_function(base._next_index, Role("draws", DrawsListener(fetches)))
    if fetches.rereads is not None:
        collates = Role("collates", CollatesListener(fetches.rereads))
        job.functions.watch_function(default_collate, collates)
    roles = [
        Role(event.name, event=event, path=NEXT)
        for event in job.spec.events
        if NEXT in event.callables
    ]
    for cls in (
        base,
        dataloader._MultiProcessingDataLoaderIter,
        dataloader._SingleProcessDataLoaderIter,
    ):
        function = vars(cls).get("__next__")
        if isinstance(function, FunctionType):
            job.functions.exchange(function, _next(job, fetches, function, roles))


def _next(
    job: FollowedJob, fetches: LoaderIterators, function: FunctionType, roles: list[Role]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    readers = WatchedFunction(function, method=True)
    for role in roles:
        readers.add(role)

    def into(original: Callable[..., Any]) -> Callable[..., Any]:
        def fetch(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            batch = original(iterator, *args, **kwargs)
            if job.active and not PROCESS.quiet.on:
                job.quietly(lambda: fetches.fetched(iterator, batch, readers.roles))
            return batch

        return fetch

    return into

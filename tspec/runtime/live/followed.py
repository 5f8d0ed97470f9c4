"""The interface of a followed job to its mechanisms and to adapters of frameworks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from tspec.runtime.live.activities import Activity
from tspec.runtime.live.ambient import AmbientValues
from tspec.runtime.live.functions import WatchedFunctions
from tspec.runtime.live.instrument.threads import ThreadState
from tspec.runtime.live.pending import PendingCall
from tspec.runtime.live.ranks import RankTopology
from tspec.runtime.live.state import SubjectRegistry
from tspec.runtime.live.steps import LoopState
from tspec.runtime.live.watch import WatchSpec
from tspec.runtime.live.watched import Role


class FollowedJob(Protocol):
    """One process of a training job, as its mechanisms see it."""

    calibrating: int
    """The number of running calls that take statistics."""
    joins: bool
    """The loop is within `Join`: this rank may leave it at any batch, and then wait for others."""
    chunk: int | None
    """The micro-batch that a stage of a pipeline passes on or back, from 1; None outside of such a pass."""

    @property
    def active(self) -> bool:
        """True from the job's start to its end."""

    @property
    def spec(self) -> WatchSpec:
        """The events, entities and groups to watch."""

    @property
    def functions(self) -> WatchedFunctions:
        """The functions that are watched; mechanisms add theirs here."""

    @property
    def state(self) -> SubjectRegistry:
        """The subjects."""

    @property
    def known(self) -> AmbientValues:
        """Values of no subject."""

    @property
    def ranks_known(self) -> RankTopology:
        """The groups of this rank."""

    @property
    def rank(self) -> int:
        """This process's rank."""

    @property
    def threads(self) -> ThreadState:
        """The calls that are open on the current thread."""

    @property
    def place(self) -> LoopState:
        """The position of the training loop."""

    @property
    def staggered(self) -> bool:
        """The job sends from rank to rank, as pipelines do."""

    def do(self, activity: Activity) -> None:
        """The run made an activity from which steps are derived."""

    def do_before_next(self, action: Callable[[], None]) -> None:
        """Do it right before the next activity. If the rank joins before there is one, it is left out."""

    def happened(self, role: Role, values: Mapping[str, Any]) -> None:
        """A call is over already; its fields are read from values at hand."""

    def arrived(self, pending: PendingCall, waited_for: bool = True) -> None:
        """The output of a call that returned earlier is there, or will not be waited for."""

    def taken_up(
        self, tensors: Sequence[torch.Tensor] = (), gradients: Sequence[torch.Tensor] = ()
    ) -> None:
        """Training continues with received tensors: a layer is about to read `tensors`, or a
        backward pass to begin with `gradients`.
        """

    def waits(self) -> None:
        """A step is done, and the process is about to wait for another rank."""

    def features(
        self, tensors: Sequence[Any], names: tuple[str, ...]
    ) -> Sequence[Mapping[str, Any]]:
        """Features of many tensors at once."""

    def built(self) -> None:
        """A module or an optimizer was built. Objects that the script released are freed."""

    def forked(self, worker: int | None) -> None:
        """This process is a fork: a job of its own, or the loader's worker of that number."""

    def quietly(self, action: Callable[[], None]) -> None:
        """Run code of tspec's own; a fault in it does not reach the job."""

    def say(self, message: str) -> None:
        """Tell the person at the terminal something, once."""

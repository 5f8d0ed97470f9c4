"""The schedule by which a job is sampled: the first n times, and then every n-th time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import torch

_Given = ParamSpec("_Given")
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Sampling:
    """Selects the first `first` numbers of a series that counts from 1, and then the multiples of
    `every`.
    """

    first: int
    every: int

    def takes(self, count: int) -> bool:
        """True if this number is selected."""
        return count <= self.first or count % self.every == 0

    def takes_with_next(self, count: int) -> bool:
        """True if this number or the one before it is selected, so that two consecutive ones can be
        compared.
        """
        return self.takes(count) or self.takes(count - 1)


UPDATES = Sampling(first=20, every=10)
"""Updates of an optimizer at which state is read that no rule asks for otherwise."""


MOST_TRAININGS = 8
"""The number of trainings of a job that are told apart. It may build an optimizer for each of many tasks."""


def only_training() -> int:
    """The number of the training in a job of one."""
    return 0


@dataclass(frozen=True, slots=True)
class TrainingSampling:
    """Reads in the first calls of each training of a job.

    A new optimizer begins one, as a fine-tuning after the pretraining: its losses are other ones.
    `training`: the number of the training that is under way.
    """

    training: Callable[[], int] = only_training

    def of_first(self, calls: int, read: Callable[_Given, _Read]) -> Callable[_Given, _Read | None]:
        """A function that reads in its first calls of a training, up to a number, and returns None after them."""
        training, left = self.training(), calls

        def reads(*given: _Given.args, **named: _Given.kwargs) -> _Read | None:
            nonlocal training, left
            if not left and self.training() != training:
                training, left = self.training(), calls
            if not left:
                return None
            left -= 1
            return read(*given, **named)

        return reads

    def of_first_with_graph(
        self, calls: int, read: Callable[_Given, _Read]
    ) -> Callable[_Given, _Read | None]:
        """The same of calls in which gradients are recorded. It returns None in others, which do not
        count: an evaluation may come before the first step.
        """
        reads = self.of_first(calls, read)

        def reads_with_graph(*given: _Given.args, **named: _Given.kwargs) -> _Read | None:
            return reads(*given, **named) if torch.is_grad_enabled() else None

        return reads_with_graph

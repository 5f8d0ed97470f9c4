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


def of_first(calls: int, read: Callable[_Given, _Read]) -> Callable[_Given, _Read | None]:
    """A function that reads in its first calls, up to a number, and returns None after them."""
    left = iter(range(calls))

    def reads(*given: _Given.args, **named: _Given.kwargs) -> _Read | None:
        return None if next(left, None) is None else read(*given, **named)

    return reads


def of_first_with_graph(
    calls: int, read: Callable[_Given, _Read]
) -> Callable[_Given, _Read | None]:
    """The same of calls in which gradients are recorded. It returns None in others, which do not
    count: an evaluation may come before the first step.
    """
    reads = of_first(calls, read)

    def reads_with_graph(*given: _Given.args, **named: _Given.kwargs) -> _Read | None:
        return reads(*given, **named) if torch.is_grad_enabled() else None

    return reads_with_graph

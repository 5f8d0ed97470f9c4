"""Which optimizers another rank updates, as a rank sees it that trains and never calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
import torch.distributed as dist
from torch import nn

from tspec.runtime.live.activities import Activity, Update
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.mechanisms.received import PASSES, SentUpdates

Write = Callable[[torch.Tensor], Any]


class Job:
    """What is asked of a followed job. The number of an optimizer is its place."""

    def __init__(self, *optimizers: torch.optim.Optimizer) -> None:
        self.done: list[Activity] = []
        self.before_next: list[Callable[[], None]] = []
        living = frozenset(range(len(optimizers)))
        self.place = SimpleNamespace(ever=frozenset(), updating=frozenset())
        self.place.backward_since_update = True
        self.state = SimpleNamespace(
            optimizers=SimpleNamespace(
                things=lambda: dict(enumerate(optimizers)),
                numbered=SimpleNamespace(number=optimizers.index),
            ),
            living_optimizers=lambda: living,
        )

    def do(self, activity: Activity) -> None:
        self.done.append(activity)

    def do_before_next(self, action: Callable[[], None]) -> None:
        self.before_next.append(action)

    def next(self) -> list[int]:
        """Another activity: the optimizers that are found to be updated before it."""
        waiting, self.before_next = self.before_next, []
        for action in waiting:
            action()
        ended = [each for each in self.done if isinstance(each, Update) and each.ended]
        self.done.clear()
        return [each.optimizer for each in ended]


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The job has two of them."""
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    yield


def sgd(weight: torch.Tensor) -> torch.optim.Optimizer:
    return torch.optim.SGD([weight], lr=0.1)


def follow(job: Job) -> SentUpdates:
    return SentUpdates(cast(FollowedJob, job))


def in_place(weight: torch.Tensor) -> None:
    with torch.no_grad():
        weight.add_(1)


def through_data(weight: torch.Tensor) -> None:
    weight.data.copy_(torch.ones_like(weight))


def other_memory(weight: torch.Tensor) -> None:
    weight.data = torch.ones_like(weight)


WAYS: list[Write] = [in_place, through_data, other_memory]


@pytest.mark.usefixtures("ranks")
@pytest.mark.parametrize("write", WAYS)
def test_what_differs_after_a_pass_was_updated(write: Write) -> None:
    weight, other = nn.Parameter(torch.zeros(200, 3)), nn.Parameter(torch.zeros(3))
    job = Job(sgd(weight), sgd(other))
    sent = follow(job)
    sent.pass_ended()
    write(weight)
    assert job.next() == [0]
    assert job.next() == []


@pytest.mark.usefixtures("ranks")
def test_an_update_may_come_after_other_activities() -> None:
    weight = nn.Parameter(torch.zeros(3))
    job = Job(sgd(weight))
    follow(job).pass_ended()
    assert job.next() == []
    in_place(weight)
    assert job.next() == [0]


@pytest.mark.usefixtures("ranks")
def test_it_is_looked_for_in_the_first_passes_only() -> None:
    weight = nn.Parameter(torch.zeros(3))
    job = Job(sgd(weight))
    sent = follow(job)
    for _ in range(PASSES):
        sent.pass_ended()
        assert len(job.before_next) == 1
        job.before_next.clear()
    sent.pass_ended()
    assert job.before_next == []


@pytest.mark.usefixtures("ranks")
def test_what_was_found_once_is_looked_for_in_all_passes() -> None:
    weight = nn.Parameter(torch.zeros(3))
    job = Job(sgd(weight))
    sent = follow(job)
    for _ in range(2 * PASSES):
        sent.pass_ended()
        in_place(weight)
        assert job.next() == [0]


@pytest.mark.usefixtures("ranks")
def test_what_this_rank_updates_is_not_read() -> None:
    job = Job(sgd(nn.Parameter(torch.zeros(3))))
    job.place.ever = frozenset({0})
    follow(job).pass_ended()
    assert job.before_next == []


@pytest.mark.usefixtures("ranks")
def test_what_changes_in_an_update_of_this_rank_was_not_sent() -> None:
    weight = nn.Parameter(torch.zeros(3))
    job = Job(sgd(weight))
    follow(job).pass_ended()
    job.place.updating = frozenset({0})
    in_place(weight)
    assert job.next() == []


def test_one_rank_gets_nothing_from_others() -> None:
    job = Job(sgd(nn.Parameter(torch.zeros(3))))
    follow(job).pass_ended()
    assert job.before_next == []

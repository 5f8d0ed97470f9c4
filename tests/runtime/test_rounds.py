"""Who waits for whom in rounds: two ranks in one process, with the collectives of a group made of locks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroupGloo

from tspec.runtime.ranks.allgather import (
    AllGather,
    RankLost,
    Round,
    RoundProgress,
    _AllGatherThread,
)
from tspec.runtime.ranks.packets import Packet
from tspec.runtime.ranks.sync import INDEPENDENT, LOCKSTEP, STAGGERED, SyncPolicy
from tspec.runtime.ranks.transport import GlooGroup

LONG = 200.0
"""Seconds for what comes, however busy the machine is."""
VAIN = 0.05
"""Seconds for what never comes."""


class Rounds:
    """The all-gathers of two ranks: the n-th of one is the n-th of the other."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.given: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])

    def wait_for(self, rank: int, count: int) -> None:
        """Wait until a rank has begun so many rounds."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.given[rank]) >= count, LONG)


class Group:
    """One rank's side, in the place of its link and its process group."""

    def __init__(self, rounds: Rounds, rank: int) -> None:
        self.rounds, self.rank, self.world = rounds, rank, 2
        self.opens = threading.Event()
        """The rank is connected from then on."""

    def connected(self, leaves: threading.Event) -> Group:
        assert self.opens.wait(LONG)
        return self

    def gathered(self, mine: torch.Tensor, leaves: threading.Event) -> torch.Tensor | None:
        with self.rounds.changed:
            given = self.rounds.given[self.rank]
            given.append(mine.clone())
            number = len(given) - 1
            self.rounds.changed.notify_all()
            while not all(len(told) > number for told in self.rounds.given):
                if leaves.is_set():
                    return None
                self.rounds.changed.wait(VAIN)
            return torch.stack([told[number] for told in self.rounds.given])


class Rank:
    """A rank whose waits are counted."""

    def __init__(self, rounds: Rounds, number: int, patience: float) -> None:
        self.group = Group(rounds, number)
        self.exchange = AllGather()
        self.exchange.timeout = patience
        carrier = _AllGatherThread(self.group)  # type: ignore[arg-type]
        self.exchange._carrier = carrier
        carrier.start()
        self.said: list[str] = []
        self.sync = SyncPolicy(self.exchange, True, self.said.append)
        self.waits = 0
        collect = self.exchange.collect

        def counting(patience: float) -> Round | None:
            self.waits += patience > 0
            return collect(patience)

        self.exchange.collect = counting  # type: ignore[method-assign]

    def opens(self, step: int, **options: Any) -> list[list[list[int]]]:
        """Open a step; of each round, the steps that each rank told."""
        return told(self.sync.step_opens(packet(step, **options), False))


def packet(step: int, **options: Any) -> Packet:
    return Packet((step, 0), False, [], [], {}, {}, {}, [], set(), [], **options)


def told(rounds: Iterator[Round]) -> list[list[list[int]]]:
    return [[[packet.at[0] for packet in given] for given in found] for found in rounds]


def taken(rank: Rank, count: int) -> Iterator[list[list[int]]]:
    """What a rank that joined takes while it waits for the others: so many rounds, as they are over."""
    until = time.monotonic() + LONG
    while count > 0 and time.monotonic() < until:
        for one in told(rank.sync.waits(joined=True)):
            count -= 1
            yield one


@pytest.fixture
def two(request: pytest.FixtureRequest) -> Iterator[tuple[Rank, Rank]]:
    rounds = Rounds()
    patience = getattr(request, "param", LONG)
    ranks = Rank(rounds, 0, patience), Rank(rounds, 1, patience)
    yield ranks
    for rank in ranks:
        rank.group.opens.set()
        rank.exchange.close()


@pytest.fixture
def beside() -> Iterator[Callable[..., Any]]:
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit


def test_a_rank_that_gave_two_things_in_one_round_waits_for_the_second_of_the_other(
    two: tuple[Rank, Rank], beside: Callable[..., Any]
) -> None:
    first, second = two
    first.group.opens.set()
    assert first.opens(1) == []
    first.group.rounds.wait_for(0, 1)
    assert second.opens(1) == []
    waiting = beside(second.opens, 2)
    while len(second.exchange.pending) < 2:
        time.sleep(0.001)
    second.group.opens.set()
    assert first.opens(2) == [[[1], [1, 2]], [[2], []]]
    assert waiting.result(LONG) == [[[1], [1, 2]], [[2], []]]
    waiting = beside(second.opens, 3)
    assert first.opens(3) == [[[3], [3]]]
    assert waiting.result(LONG) == [[[3], [3]]]
    assert first.sync.mode == second.sync.mode == LOCKSTEP


def test_a_rank_that_joined_gives_nothing_and_is_not_waited_for(
    two: tuple[Rank, Rank], beside: Callable[..., Any]
) -> None:
    first, second = two
    for rank in two:
        rank.group.opens.set()
        rank.opens(1)
    waiting = beside(second.opens, 1, joined=True)
    assert first.opens(2)
    assert waiting.result(LONG)
    assert [first.opens(step) for step in (3, 4)] == [[[[3], []]], [[[4], []]]]
    assert first.opens(4, joined=True) == [[[4], []]]
    assert list(taken(second, 3)) == [[[3], []], [[4], []], [[4], []]]
    # All have joined: neither takes part in a round before it has something to give.
    waiting = beside(second.opens, 5)
    assert first.opens(5) == [[[5], [5]]]
    assert waiting.result(LONG) == [[[5], [5]]]
    assert first.sync.mode == second.sync.mode == LOCKSTEP


@pytest.mark.parametrize("two", [VAIN], indirect=True)
def test_no_wait_is_repeated_that_was_in_vain(two: tuple[Rank, Rank]) -> None:
    first, second = two
    for rank in two:
        rank.group.opens.set()
        rank.exchange._carrier.connected = True  # type: ignore[union-attr]
    first.opens(1)
    modes = []
    for step in range(2, 8):
        first.opens(step)
        modes.append(first.sync.mode)
    assert modes == [STAGGERED, INDEPENDENT, INDEPENDENT, INDEPENDENT, INDEPENDENT, INDEPENDENT]
    assert first.waits == 1
    assert first.said == [
        "ranks make their steps apart: actions are taken when the others' are known"
    ]
    # What it gave is known as soon as the other comes, and the other waits for nothing.
    second.exchange.timeout = LONG
    for step in range(1, 8):
        second.opens(step)
    assert second.sync.mode == LOCKSTEP


def test_a_rank_that_is_not_checked_is_waited_for_once(two: tuple[Rank, Rank]) -> None:
    first, _ = two
    first.exchange.timeout = VAIN
    for step in range(1, 8):
        first.opens(step)
    assert first.sync.mode == INDEPENDENT
    assert first.waits == 1
    with pytest.raises(RankLost, match="no rules are checked on it"):
        list(first.sync.run_ends(packet(8), packet(8)))


def test_a_rank_that_ended_takes_part_until_all_have(
    two: tuple[Rank, Rank], beside: Callable[..., Any]
) -> None:
    first, second = two

    def ends(rank: Rank, at: Packet) -> int:
        ended: set[int] = set()
        for count, found in enumerate(rank.sync.run_ends(at, at), 1):
            ended |= {r for r, given in enumerate(found) if any(p.finished for p in given)}
            if len(ended) == 2:
                return count
        return 0

    for rank in two:
        rank.group.opens.set()
        rank.opens(1)
    last = packet(1)
    last.finished = True
    ended = beside(ends, second, last)
    for step in range(2, 9):
        assert first.opens(step)
    assert ends(first, last) >= 1
    assert ended.result(LONG) >= 1
    assert first.sync.mode == LOCKSTEP


def test_standing_is_that_of_all_rounds() -> None:
    standing = RoundProgress()
    assert not standing.answers(0)
    standing = standing.after([[packet(1), packet(2)], [packet(1)]])
    assert (standing.answers(0), standing.answers(1)) == (True, False)
    standing = standing.after([[], [packet(2, joined=True)]])
    assert (standing.answers(0), standing.answers(1)) == (False, True)
    standing = standing.after([[packet(3)], []]).after([[packet(4, joined=True)], []])
    assert standing == RoundProgress((4, 4), frozenset({0, 1}))
    assert (standing.answers(0), standing.answers(1)) == (False, False)
    standing = standing.after([[packet(5)], [packet(5)]])
    assert standing == RoundProgress((5, 5), frozenset())


class RealTransport:
    """The place of a rank among ranks that Gloo connects within this process. `fails` at its first round."""

    def __init__(self, store: dist.Store, rank: int, world: int, fails: bool) -> None:
        self._store, self.rank, self.world, self._fails = store, rank, world, fails

    def connected(self, leaves: threading.Event) -> GlooGroup:
        group = ProcessGroupGloo(self._store, self.rank, self.world, timedelta(days=1))
        return FailingGroup(group) if self._fails else GlooGroup(group, self.rank, self.world)


class FailingGroup(GlooGroup):
    """A group of a rank that fails before it gives anything."""

    def __init__(self, group: ProcessGroupGloo) -> None:
        self._group = group

    def gathered(self, mine: torch.Tensor, leaves: threading.Event) -> torch.Tensor | None:
        raise RuntimeError("failed")


def test_a_lost_rank_is_known_to_all_and_not_only_to_the_rank_that_gathers() -> None:
    store = dist.HashStore()
    threads = [
        _AllGatherThread(RealTransport(store, rank, 4, rank == 3))  # type: ignore[arg-type]
        for rank in range(4)
    ]
    for thread in threads:
        thread.start()
        thread.give(packet(1))
    told = [thread.take(LONG) for thread in threads]
    assert all(isinstance(each, str) for each in told), told

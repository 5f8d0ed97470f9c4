"""Waits for a rank that does not come take one timeout together, and one more at the end of the run."""

from __future__ import annotations

import pytest

from tspec.runtime.ranks.allgather import AllGather, RankLost, Round
from tspec.runtime.ranks.packets import Packet
from tspec.runtime.ranks.sync import INDEPENDENT, SyncPolicy

TIMEOUT = 60.0
PACKET = Packet((1, 1), False, [], [], {}, {}, {}, [], set(), [])


class Alone(AllGather):
    """All ranks are connected, and no other gives anything. Waits last no time, and are noted."""

    def __init__(self) -> None:
        super().__init__()
        self.timeout = TIMEOUT
        self.waits: list[float] = []

    @property
    def connected(self) -> bool:
        return True

    def collect(self, patience: float) -> Round | None:
        if patience > 0:
            self.waits.append(patience)
        return None


def steps(policy: SyncPolicy, count: int) -> None:
    """Open so many steps."""
    for _ in range(count):
        assert list(policy.step_opens(PACKET, staggered=False)) == []


def test_waits_for_a_rank_that_makes_no_step_take_one_timeout_together() -> None:
    allgather = Alone()
    policy = SyncPolicy(allgather, True, lambda message: None)
    steps(policy, 20)
    assert len(allgather.waits) == 2  # together, and one after another
    assert sum(allgather.waits) <= TIMEOUT
    assert policy.mode == INDEPENDENT


def test_a_rank_that_does_not_end_is_waited_for_once() -> None:
    allgather = Alone()
    policy = SyncPolicy(allgather, False, lambda message: None)
    steps(policy, 3)
    with pytest.raises(RankLost, match="it did not end"):
        list(policy.run_ends(PACKET, PACKET))
    assert len(allgather.waits) == 1 and allgather.waits[0] <= TIMEOUT
    assert allgather.broken == "it did not end"
    assert not allgather.ready()

"""The sync policy of a rank: when it waits for the others at the opening of a step.

- `LOCKSTEP`: ranks open their steps together and wait there, so that all stop in the same step.
- `STAGGERED`: stages of a pipeline open a step one after another. They wait when the next step opens, or before
  they receive the tensor that opens it; that is the same step on all of them.
- `INDEPENDENT`: a rank never waits, and processes the packets of the others when they arrive.

Every wait is bounded. A wait that times out weakens the policy, so it is not repeated. Waits for steps that
time out take one timeout together, and so does the end: a rank that did not end is not waited for again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from tspec.runtime.ranks.allgather import AllGather, Round
from tspec.runtime.ranks.packets import Packet

LOCKSTEP, STAGGERED, INDEPENDENT = 0, 1, 2
SOON = 10.0
"""Seconds after which ranks that should open a step together count as opening it one after another."""


class SyncPolicy:
    """The rounds of one rank and its waits for them. `needed`: some action must be taken by all
    ranks at the same time.
    """

    def __init__(self, allgather: AllGather, needed: bool, say: Callable[[str], None]) -> None:
        self.allgather = allgather
        self.mode = LOCKSTEP if needed else INDEPENDENT
        self._say = say
        self._openings = 0
        self._updates = True
        """Ranks come to their updates together."""
        self._in_vain = 0.0
        """Seconds of the waits for steps that timed out."""

    def step_opens(self, packet: Packet, staggered: bool) -> Iterator[Round]:
        """Give a packet where a step opens; yields the rounds that are over by now. Raises RankLost."""
        if staggered:
            self.at_least(STAGGERED)
        self._openings += 1
        if self.mode == STAGGERED and self._openings > 1:
            yield from self._all(self._left, INDEPENDENT)
            self.allgather.give(packet)
            return
        self.allgather.give(packet)
        if self.mode == LOCKSTEP and self._openings > 1:
            yield from self._all(min(SOON, self.allgather.timeout), STAGGERED)
            return
        yield from self.over()

    def over(self) -> Iterator[Round]:
        """The rounds that are over by now. Raises RankLost."""
        while (found := self.allgather.collect(0.0)) is not None:
            yield found

    def waits(self, joined: bool) -> Iterator[Round]:
        """A rank whose step is done is about to wait for another, which may have stopped. Raises RankLost."""
        if joined:
            yield from self.over()
        elif self.mode == STAGGERED and self._under_way:
            yield from self._all(self._left, INDEPENDENT)

    def before_update(self, packet: Packet) -> Iterator[Round]:
        """Give a packet before an update and wait for all ranks, as long as they come. Raises RankLost."""
        self.allgather.give(packet)
        if self._updates:
            yield from self._all(min(SOON, self.allgather.timeout), None)

    def run_ends(self, packet: Packet, more: Packet) -> Iterator[Round]:
        """Give a packet at the end, and `more` whenever others go on; the caller leaves when all have ended."""
        while True:
            self.allgather.give(packet)
            patience = self.allgather.timeout
            patience = patience if self.allgather.connected else min(SOON, patience)
            yield from self._rounds(patience, lambda: self.allgather.busy)
            if self.allgather.busy:
                here = self.allgather.connected
                self.allgather.lose("it did not end" if here else "no rules are checked on it")
            packet = more

    def at_least(self, mode: int) -> None:
        """Take over the policy of a rank with a weaker one."""
        self.mode = max(self.mode, mode)

    def _all(self, patience: float, otherwise: int | None) -> Iterator[Round]:
        """All rounds that are under way. If other ranks do not come in time, this wait is not
        repeated.
        """
        yield from self._rounds(patience, lambda: self._under_way)
        if not self._under_way:
            return
        if otherwise is None:
            self._updates = False
            self._say("ranks do not come to an update together: it is not left out on all of them")
            return
        self._in_vain += patience
        if not self.allgather.connected:
            otherwise = INDEPENDENT  # some rank is not checked, or comes very late
        self.at_least(otherwise)
        if otherwise == INDEPENDENT:
            self._say("ranks make their steps apart: actions are taken when the others' are known")

    @property
    def _left(self) -> float:
        """Seconds that are left for waits for steps: all that time out take one timeout together."""
        return max(0.0, self.allgather.timeout - self._in_vain)

    @property
    def _under_way(self) -> bool:
        """A packet of this rank has not come back, or another rank has given fewer."""
        return self.allgather.busy or self.allgather.ahead

    def _rounds(self, patience: float, wanted: Callable[[], bool]) -> Iterator[Round]:
        until = time.monotonic() + patience
        while wanted():
            found = self.allgather.collect(max(0.0, until - time.monotonic()))
            if found is None:
                return
            yield found

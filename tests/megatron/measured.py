"""What a job of the tests costs, step by step: seconds, and calls of collectives."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from torch._C._distributed_c10d import Backend, ProcessGroup

COLLECTIVES = (
    "broadcast", "allreduce", "allreduce_coalesced", "reduce", "allgather", "all_gather_single", "allgather_coalesced",
    "reduce_scatter", "reduce_scatter_single", "all_to_all_single", "alltoall_base", "alltoall", "send", "recv",
)  # fmt: skip


class Measured:
    """Begins to measure this process. It is made once, before the first step; the counting stays."""

    def __init__(self) -> None:
        self.costs: list[dict[str, float]] = []
        """Of each step: `seconds`, `job` and `tspec`, the collectives that each began meanwhile."""
        self._begun: Counter[str] = Counter()
        self._before: Counter[str] = Counter()
        for name in COLLECTIVES:
            if hasattr(ProcessGroup, name):
                setattr(ProcessGroup, name, self._counting("job", getattr(ProcessGroup, name)))
        # The rules' rounds go to a backend, and to no process group of the job.
        Backend.gather = self._counting("tspec", Backend.gather)
        Backend.broadcast = self._counting("tspec", Backend.broadcast)
        self._since = time.perf_counter()

    def _counting(self, whose: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **kwargs: Any) -> Any:
            self._begun[whose] += 1
            return call(*args, **kwargs)

        return counting

    def stepped(self) -> None:
        """A step is over."""
        now, begun = time.perf_counter(), Counter(self._begun)
        counts = {whose: begun[whose] - self._before[whose] for whose in ("job", "tspec")}
        self.costs.append({"seconds": now - self._since, **counts})
        self._since, self._before = now, begun

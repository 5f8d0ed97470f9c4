"""Rules that are decided after their windows ended, when values have arrived from a device: as if they had been there at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from tests.check.agreement import disagreement
from tests.check.jobs import Shape, job
from tests.check.steady import steady
from tests.check.strategies import case, loaded, spec
from tspec.check import replayed
from tspec.runtime import postponed as postponed_rules
from tspec.runtime.transfers import ColumnsInTransfer, RowInTransfer

CASES = (
    *(476, 957, 1019, 1452, 1618, 1650, 1710, 1718, 2218, 2498, 2635, 2794, 2972, 3169, 3389, 3628),
    *(3991, 4490, 4556, 4771, 5245),
)
"""Random rules and jobs of one rank in which rules are postponed."""
OF_CALLS = (
    "for c in calls(forward)\nexpect finite(c.inputs)",
    "for c in calls(forward)\nwhen present(c.output)\nexpect norm(c.output) < 3",
)
"""The second is postponed too, while the inputs of the first are in transfer."""


class SlowDevice:
    """A copy that arrives at a later instant, or sooner if it is waited for."""

    def __init__(self, source: SlowSource, late: int) -> None:
        self._source = source
        self._at = source.seq + late

    def arrived(self) -> bool:
        return self._source.seq >= self._at


class SlowSource(replayed.StreamSource):
    """A recording whose features come late, as from a device."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._dice = Random(0)
        self._latest: SlowDevice | None = None

    @property
    def transfer(self) -> SlowDevice | None:  # type: ignore[override]
        return None if self._latest is None or self._latest.arrived() else self._latest

    def features(
        self, tensors: Sequence[Any], names: tuple[str, ...]
    ) -> Sequence[Mapping[str, Any]]:
        rows = super().features(tensors, names)
        self._latest = SlowDevice(self, self._dice.choice((0, 1, 5, 50)))
        columns = {name: [row[name] for row in rows] for name in names}
        late = ColumnsInTransfer(self._latest, lambda: columns)
        return [RowInTransfer({}, names, late, place) for place in range(len(rows))]


def test_results_of_calls_are_sampled_before_their_tensors_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replayed, "StreamSource", SlowSource)
    found = loaded(spec([*OF_CALLS]))
    assert len(found) == len(OF_CALLS)
    for seed in range(4):
        trace = steady(job(Shape(seed, ranks=1, steps=4)))
        assert not (why := disagreement(found, trace, replayed.check)), why


def test_postponed_rules_are_decided_as_the_interpreter_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    postponed = 0

    def count(make: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            nonlocal postponed
            postponed += 1
            return make(*arguments)

        return counted

    monkeypatch.setattr(replayed, "StreamSource", SlowSource)
    monkeypatch.setattr(postponed_rules, "Postponed", count(postponed_rules.Postponed))
    for number in CASES:
        body, shape = case(number)
        before = postponed
        assert not (
            why := disagreement(loaded(spec([body])), steady(job(shape)), replayed.check)
        ), why
        assert postponed > before, number

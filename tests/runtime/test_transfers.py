"""Values in transfer: they are read once, when they are first used, and what is there already does not wait for them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

import tspec
from tspec.resolve import load
from tspec.runtime.calls.call import CallRecord, KeptField
from tspec.runtime.edges import Context, WatchedCall
from tspec.runtime.live.cuda.transfer import HostCopy, in_transfer
from tspec.runtime.transfers import ColumnsInTransfer, NumberInTransfer, RowInTransfer, arrived
from tspec.targets.compile import compile_program
from tspec.targets.load import module_of


def rows(reads: list[str]) -> list[RowInTransfer]:
    def read() -> dict[str, list[object]]:
        reads.append("read")
        return {"norm": [1.0, 2.0], "finite": [True, False]}

    columns = ColumnsInTransfer(HostCopy(torch.zeros(1)), read)
    return [
        RowInTransfer({"numel": 3 + place}, ("norm", "finite"), columns, place)
        for place in range(2)
    ]


def test_features_that_are_there_do_not_wait() -> None:
    reads: list[str] = []
    first, second = rows(reads)
    second["name"] = "fc.weight"
    assert (first["numel"], second["numel"], second["name"]) == (3, 4, "fc.weight")
    assert first.get("zeros") is None and "zeros" not in first
    assert reads == [] and first.transfer is second.transfer is not None


def test_rows_of_one_transfer_wait_once() -> None:
    reads: list[str] = []
    first, second = rows(reads)
    assert second["finite"] is False
    assert dict(first) == {"numel": 3, "norm": 1.0, "finite": True}
    assert reads == ["read"] and first.transfer is None


def test_a_number_on_a_cpu_is_there_at_once() -> None:
    assert in_transfer(torch.tensor(2.5), float) == 2.5
    assert arrived(2.5) == arrived(NumberInTransfer(HostCopy(torch.zeros(1)), lambda: 2.5)) == 2.5


def test_a_field_of_a_call_in_transfer_is_read_where_a_rule_asks_for_it() -> None:
    asked: list[str] = []

    def read() -> float:
        asked.append("loss")
        return 0.5

    call = WatchedCall(1, None, "backward", "backward", 7, Context())
    call.fields["loss"] = NumberInTransfer(HostCopy(torch.zeros(1)), read)
    record = CallRecord(call, {"loss": KeptField()}, source=None)  # type: ignore[arg-type]
    assert asked == []
    assert record.get("loss") == record.get("loss") == record.given_field("loss") == 0.5
    assert asked == ["loss"]


LATE = """
edition 2026

use std.torch

context { overflowed: bool }

invariant left_out_updates_change_nothing {
  for p in parameters
  during optimizer.step
  when overflowed
  expect not changed(p.data)
  else warn
}
"""


class Waiting:
    """A transfer that arrives where something has waited for it."""

    def __init__(self, value: bool, seen: list[str]) -> None:
        self.is_there = False
        self._value, self._seen = value, seen

    def arrived(self) -> bool:
        return self.is_there

    def read(self) -> bool:
        self._seen.append("read")
        self.is_there = True
        return self._value


class Update(torch.optim.SGD):
    def __init__(self, parameters: Iterable[torch.Tensor], seen: list[str]) -> None:
        super().__init__(parameters, lr=0.1)
        self.seen = seen

    def step(self, closure: Any = None) -> None:
        self.seen.append("updated")
        super().step()


@pytest.mark.parametrize("overflowed", [True, False])
def test_a_window_opens_without_waiting_for_context(overflowed: bool, tmp_path: Path) -> None:
    """Whether the condition holds is known after the update; what the rule compares is taken before it."""
    rules = tmp_path / "late.tspec"
    rules.write_text(LATE)
    program = load([rules]).program
    assert program is not None
    seen: list[str] = []
    found: list[Any] = []
    with module_of(compile_program(program)).install(callback=found.append):
        model = torch.nn.Linear(2, 2)
        optimizer = Update(model.parameters(), seen)
        for step in (1, 2):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            transfer = Waiting(overflowed and step == 2, seen)
            tspec.annotate(overflowed=NumberInTransfer(transfer, transfer.read))
            optimizer.step()
    assert seen == ["updated", "read"] * 2
    assert {each["step"] for each in found} == ({2} if overflowed else set())

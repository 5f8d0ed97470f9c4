"""Values in transfer: they are read once, when they are first used, and what is there already does not wait for them."""

import torch

from tspec.runtime.calls.call import CallRecord, KeptField
from tspec.runtime.edges import Context, WatchedCall
from tspec.runtime.live.cuda.transfer import HostCopy, in_transfer
from tspec.runtime.transfers import ColumnsInTransfer, NumberInTransfer, RowInTransfer, arrived


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
    assert arrived(2.5) == arrived(NumberInTransfer(lambda: 2.5)) == 2.5


def test_a_field_of_a_call_in_transfer_is_read_where_a_rule_asks_for_it() -> None:
    asked: list[str] = []

    def read() -> float:
        asked.append("loss")
        return 0.5

    call = WatchedCall(1, None, "backward", "backward", 7, Context())
    call.fields["loss"] = NumberInTransfer(read)
    record = CallRecord(call, {"loss": KeptField()}, source=None)  # type: ignore[arg-type]
    assert asked == []
    assert record.get("loss") == record.get("loss") == record.given_field("loss") == 0.5
    assert asked == ["loss"]

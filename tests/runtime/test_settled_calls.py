"""Settled calls, kept as columns, are found as records of them were."""

from __future__ import annotations

from tspec.runtime.calls.call import CallRecord, KeptField, outermost
from tspec.runtime.calls.log import CallLog, Retention
from tspec.runtime.edges import Context, Location, Ref, WatchedCall

LINES = (Location("train.py", 3, "main"), Location("train.py", 4, "main"))


class Calls:
    """A log of calls that are made and return one after another."""

    def __init__(self) -> None:
        self.log = CallLog({"fetch": Retention(("loader",), ("loader",), ("tensors",))})
        self.seq = 0

    def begin(
        self, event: str, fields: dict[str, object], parent: WatchedCall | None = None
    ) -> CallRecord:
        self.seq += 1
        line = LINES[self.seq % 2]
        call = WatchedCall(
            100 + self.seq, parent, event, event, self.seq, Context(), fields, location=line
        )
        kept = dict.fromkeys(fields, KeptField(looked_up=True))
        record = CallRecord(call, kept, None)  # type: ignore[arg-type]  # nothing is read of it
        self.log.add(record)
        return record

    def end(self, record: CallRecord) -> None:
        self.seq += 1
        record.end = self.seq
        record.leave()

    def step(self, *opened: str) -> None:
        """A step begins; the window of these events is open since the begin."""
        self.seq += 1
        self.log.forget(self.seq, dict.fromkeys(opened, 0))


def fetches() -> tuple[Calls, list[CallRecord]]:
    calls, made = Calls(), []
    for number in range(6):
        fields = {"loader": Ref("loader", f"#{number % 2}"), "tensors": float(number), "extra": 1}
        made.append(calls.begin("fetch", fields))
        calls.end(made[-1])
        calls.step("fetch")
    return calls, made


def test_settled_calls_keep_what_windows_read() -> None:
    calls, made = fetches()
    found = calls.log.between(0, calls.seq, ["fetch"])
    assert found == made
    assert [one.get("loader") for one in found] == [one.get("loader") for one in made]
    assert [one.end for one in found] == [one.end for one in made]
    assert [one.location for one in found] == [one.location for one in made]
    assert [one.get("tensors") for one in found[:2]] == [0.0, 1.0]  # of the first of each loader
    assert not any("tensors" in one.values for one in found[2:])
    assert not any("extra" in one.values for one in found)


def test_settled_calls_that_are_alike_share_their_fields() -> None:
    calls, _ = fetches()
    found = calls.log.between(0, calls.seq, ["fetch"])
    assert found[2].values is found[4].values
    assert found[2].values is not found[3].values


def test_calls_are_found_by_begin_and_by_end() -> None:
    calls, made = fetches()
    running = calls.begin("fetch", {"loader": Ref("loader", "#0")})
    assert calls.log.between(made[1].begin, made[3].begin, ["fetch"]) == made[1:4]
    assert calls.log.between(made[5].begin, calls.seq, ["fetch"]) == [made[5], running]
    last = [*calls.log.ended_between(made[2].end or 0, calls.seq, ["fetch"])]
    assert last == made[:1:-1]


def test_calls_are_dropped_with_their_window() -> None:
    calls, made = fetches()
    calls.log.forget(calls.seq, {"fetch": made[4].begin})
    assert calls.log.between(0, calls.seq, ["fetch"]) == made[4:]
    calls.step()
    assert calls.log.between(0, calls.seq, ["fetch"]) == []


def test_a_settled_call_knows_the_calls_around_it() -> None:
    calls = Calls()
    outer = calls.begin("fetch", {})
    inner = calls.begin("fetch", {}, parent=outer.call)
    for one in (inner, outer):
        calls.end(one)
    calls.step("fetch")
    found = calls.log.between(0, calls.seq, ["fetch"])
    assert [one.begin for one in found] == [outer.begin, inner.begin]
    assert outermost(found) == (outer,)
    assert calls.log.enclosing(found[1]) == [outer]
    assert calls.log.enclosing(found[0]) == []

"""An index of calls finds what a look at each call finds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tspec.runtime.calls.call import CallRecord, Pattern, outermost
from tspec.runtime.calls.index import CallIndex
from tspec.runtime.edges import Context, Missing, Ref, WatchedCall

PATTERN = Pattern(0, frozenset({"forward"}), ("module",))
MODULES = [Ref("module", name) for name in "abc"]
VALUES = st.sampled_from([*MODULES, Missing.ABSENT, Missing.NOT_RECORDED, "a"])


def record(number: int, module: Any, ended: bool, within: tuple[int, ...]) -> CallRecord:
    """A call as the log of calls keeps it."""
    watched = WatchedCall(number, None, "forward", "torch.nn.Module.__call__", number, Context())
    made = CallRecord(watched, {}, None)  # type: ignore[arg-type]  # nothing is read of it
    made.values = {"module": module}
    made.end = number if ended else None
    made.within = within
    return made


@st.composite
def logs(draw: st.DrawFn) -> list[CallRecord]:
    """Calls in order, each within some of those before it."""
    count = draw(st.integers(0, 12))
    return [
        record(
            number,
            draw(VALUES),
            draw(st.booleans()),
            tuple(draw(st.sets(st.integers(0, number - 1)))) if number else (),
        )
        for number in range(count)
    ]


@given(logs(), st.lists(VALUES, min_size=1))
def test_an_index_finds_what_a_look_at_each_call_finds(
    calls: list[CallRecord], asked: list[Any]
) -> None:
    index = CallIndex(calls, PATTERN, (asked[0],))
    for wanted in asked:

        def is_one(call: CallRecord, wanted: Any = wanted) -> bool:
            return bool(call.get("module") == wanted)

        expected = outermost(call for call in calls if is_one(call))
        assert index.outermost((wanted,), is_one) == expected
        assert index.outermost((wanted,), is_one) == expected  # also when it is asked again


def test_a_call_is_looked_at_once_for_its_subject() -> None:
    calls = [record(number, MODULES[number % 3], True, ()) for number in range(30)]
    index = CallIndex(calls, PATTERN, (MODULES[0],))
    looked: list[int] = []

    def is_one(call: CallRecord) -> bool:
        looked.append(call.id)
        return True

    for module in MODULES * 2:
        assert len(index.outermost((module,), is_one)) == 10
    assert sorted(looked) == list(range(30))

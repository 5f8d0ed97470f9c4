"""`docs/design/semantics.md`, "Claims": a test for each line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.check.building import Writer, decide, tensor, verdicts
from tspec.trace.model import Begin, Boundary, Missing


def calls(*events: str) -> Writer:
    """One step with these calls, one after another; `a(b)` is b inside of a."""
    out = Writer()
    out.step(1)
    for event in events:
        outer, _, inner = event.partition("(")
        with out.calling(outer):
            if inner:
                out.call(inner.rstrip(")"))
    out.finish()
    return out


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        (("backward", "clip"), "holds"),
        (("clip", "backward"), "violated"),
        (("backward",), "idle"),
        (("backward", "clip", "clip"), "holds"),
        (("clip", "backward", "clip"), "violated"),
        (("backward(clip)",), "violated"),
    ],
)
def test_each_b_has_an_a_that_ended_before_it(events: tuple[str, ...], verdict: str) -> None:
    assert verdicts("each step expect backward before clip", calls(*events)) == [verdict]


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        (("backward", "clip", "save"), "holds"),
        (("backward", "clip"), "holds"),
        (("clip", "save"), "violated"),
        (("backward", "save"), "violated"),
        (("backward",), "idle"),
    ],
)
def test_three_in_a_row_are_two_pairs(events: tuple[str, ...], verdict: str) -> None:
    rule = "each step expect backward before clip before save"
    assert verdicts(rule, calls(*events)) == [verdict]


def test_an_a_of_an_earlier_window_does_not_count() -> None:
    out = calls("backward")
    out.records.pop()
    out.step(2)
    out.call("clip")
    out.finish()
    assert verdicts("each step expect backward before clip", out) == ["idle", "violated"]


def test_contains() -> None:
    assert verdicts("each step expect contains clip", calls("backward", "clip")) == ["holds"]
    assert verdicts("each step expect contains clip", calls("backward")) == ["violated"]
    assert verdicts("each step expect contains clip", calls("backward(clip)")) == ["holds"]


def steps(write: Callable[[Writer], Any]) -> Writer:
    """A parameter with digest 1, and a step in which `write` happens."""
    out = Writer()
    out.sample("parameter", "w", data=tensor(1))
    out.step(1)
    write(out)
    out.step(2)
    out.finish()
    return out


def changes(out: Writer, digest: Any = 2) -> None:
    """Something writes to the parameter, just now."""
    out.sample("parameter", "w", data=tensor(digest))


ONLY = "for p in parameters each step expect changed(p.data) only during optimizer.step or clip"


def test_a_change_inside_is_allowed() -> None:
    def write(out: Writer) -> None:
        out.begin("optimizer.step")
        out.end()
        changes(out)

    assert verdicts(ONLY, steps(write))[0] == "holds"


def test_a_change_outside_is_a_violation() -> None:
    def write(out: Writer) -> None:
        out.call("optimizer.step")
        out.begin("backward")
        out.end()
        changes(out)

    assert verdicts(ONLY, steps(write))[0] == "violated"


def test_a_change_between_two_calls_is_seen() -> None:
    def write(out: Writer) -> None:
        out.call("optimizer.step")
        out.begin("clip")
        changes(out)
        out.end()

    assert verdicts(ONLY, steps(write))[0] == "violated"


def test_an_unknown_digest_is_unknown_unless_a_change_outside_is_known() -> None:
    def unknown(out: Writer) -> None:
        out.call("optimizer.step")
        changes(out, None)

    def known(out: Writer) -> None:
        out.call("optimizer.step")
        changes(out, None)
        out.call("clip")
        changes(out, 3)
        out.call("backward")
        changes(out, 4)

    assert verdicts(ONLY, steps(unknown))[0] == "unknown"
    assert verdicts(ONLY, steps(known))[0] == "violated"


def test_absent_at_both_readings_is_no_change() -> None:
    def absent(out: Writer) -> None:
        out.sample("parameter", "w", data=Missing.ABSENT)
        out.call("optimizer.step")

    out = steps(lambda out: out.call("optimizer.step"))
    out.records[0] = out.records[0].__class__(
        0, out.context, "parameter", "w", {"data": Missing.ABSENT}
    )
    assert verdicts(ONLY, out) == ["holds", "holds"]

    def goes(out: Writer) -> None:
        out.call("backward")
        out.sample("parameter", "w", data=Missing.ABSENT)

    assert verdicts(ONLY, steps(goes))[0] == "violated"


def test_a_call_that_outlasts_the_window_covers_it() -> None:
    out = Writer()
    out.sample("parameter", "w", data=tensor(1))
    out.step(1)
    out.begin("optimizer.step")
    out.call("backward")
    changes(out)
    out.step(2)
    out.end()
    out.step(3)
    out.finish()
    assert verdicts(ONLY, out)[0] == "holds"


def test_a_call_is_enclosed_or_not() -> None:
    rule = "for c in calls(backward) expect c only during optimizer.step or clip"
    assert verdicts(rule, calls("optimizer.step(backward)")) == ["holds"]
    assert verdicts(rule, calls("backward", "clip(backward)")) == ["violated", "holds"]


def test_claims_across_ranks() -> None:
    def rank(number: int, *events: str) -> Writer:
        out = calls(*events)
        out.rank = number
        return out

    rule = "across world each step expect backward before clip"
    assert verdicts(rule, rank(0, "backward", "clip"), rank(1, "backward", "clip")) == ["holds"]
    assert verdicts(rule, rank(0, "backward", "clip"), rank(1)) == ["holds"]
    assert verdicts(rule, rank(0, "backward", "clip"), rank(1, "clip")) == ["violated"]
    assert verdicts(rule, rank(0, "backward"), rank(1)) == ["idle"]


def test_claims_at_an_instant_look_at_the_step_so_far() -> None:
    out = calls("clip", "save", "backward")
    out.records.pop()
    out.step(2)
    out.call("save")
    out.finish()
    assert verdicts("before save expect contains clip", out) == ["holds", "violated"]
    assert verdicts("before save expect contains backward", out) == ["violated", "violated"]
    assert verdicts("after save expect clip before save", out) == ["holds", "violated"]


def test_a_change_outside_points_at_the_next_call_that_sees_it() -> None:
    def before_a_call(out: Writer) -> None:
        out.call("optimizer.step")
        out.begin("backward")
        out.end()
        changes(out)
        out.call("clip")
        out.call("optimizer.step")

    def after_all_calls(out: Writer) -> None:
        out.call("optimizer.step")
        out.call("clip")
        out.begin("backward")
        out.end()
        changes(out)

    written = steps(before_a_call)
    clip = next(r for r in written.records if isinstance(r, Begin) and r.event == "clip")
    assert decide(ONLY, written).decided[0].location == clip.location
    written = steps(after_all_calls)
    [ends, *_] = [r for r in written.records if isinstance(r, Boundary) and r.index == 2]
    assert decide(ONLY, written).decided[0].location == ends.location

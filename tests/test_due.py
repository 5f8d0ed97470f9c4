"""Escalation as the page of meaning says it: one counter for each rule, of checks and not of instances."""

from __future__ import annotations

from tspec.builtin.actions import strongest
from tspec.due import ActionRecord, CheckHistory, history


def checks(*responses: ActionRecord, draft: bool = False) -> CheckHistory:
    return history(responses, draft)


def run(rule: CheckHistory, outcomes: str) -> list[str]:
    """`x` fails, `.` holds, `-` is idle or unknown: the action of each step."""
    return [rule.add(one == "x", one != "-", (step, 0)) for step, one in enumerate(outcomes, 1)]


def test_without_else_it_warns() -> None:
    assert run(checks(), "x.x") == ["warn", "", "warn"]


def test_a_draft_only_warns() -> None:
    assert run(checks(ActionRecord("stop"), draft=True), "x") == ["warn"]


def test_consecutive_checks_are_counted_and_a_passing_one_resets() -> None:
    rule = checks(ActionRecord("warn", consecutive=2))
    assert run(rule, "xx.xx") == ["", "warn", "", "", "warn"]


def test_an_idle_or_unknown_check_neither_counts_nor_resets() -> None:
    assert run(checks(ActionRecord("warn", consecutive=2)), "x--x") == ["", "", "", "warn"]


def test_so_many_of_the_last_steps() -> None:
    rule = checks(ActionRecord("stop", frequent=2, among=(3, "step")))
    assert run(rule, "x..x.x") == ["", "", "", "", "", "stop"]


def test_so_many_of_the_last_epochs() -> None:
    rule = checks(ActionRecord("stop", frequent=2, among=(2, "epoch")))
    places = [(10, 1), (30, 3), (40, 4)]
    assert [rule.add(True, True, at) for at in places] == ["", "", "stop"]
    unknown = checks(ActionRecord("stop", frequent=2, among=(2, "epoch")))
    assert unknown.add(True, True, (10, None)) == "stop"


def test_the_strongest_that_is_due_is_taken() -> None:
    rule = checks(ActionRecord("skip"), ActionRecord("stop", consecutive=3))
    assert run(rule, "xxx") == ["skip", "skip", "stop"]
    assert strongest(["warn", "", "raise", "skip"]) == "raise"
    assert strongest([]) == ""


def test_a_list_that_begins_with_a_condition_does_nothing_before_it() -> None:
    assert run(checks(ActionRecord("stop", consecutive=2)), "x.") == ["", ""]


def test_what_would_be_due_counts_nothing() -> None:
    rule = checks(ActionRecord("stop", consecutive=2))
    assert rule.would_be((1, 0)) == ""
    assert rule.would_be((1, 0)) == ""
    rule.add(True, True, (1, 0))
    assert rule.would_be((2, 0)) == "stop"

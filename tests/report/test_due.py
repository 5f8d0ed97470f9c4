"""`warn after 5 consecutive steps` says nothing of the first four, in a check of a recording as in a job."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from rich.console import Console

from tests.report import scenes
from tests.report.scenes import decided, program, rule, verdicts
from tspec.due import ActionRecord, CheckHistory
from tspec.report.build import report
from tspec.report.due import without_waiting
from tspec.report.results import from_report
from tspec.report.terminal import print_counts
from tspec.resolve.program import rules

SMALL = rule("small", scenes.below(), over="parameter")


def waits(of: rules.Rule, **how: Any) -> rules.Rule:
    """The rule with an action that is due after some failing checks."""
    return replace(of, responses=(rules.Response("warn", **how),))


def of_steps(one: rules.Rule, outcomes: str) -> Any:
    """`x` fails, `.` holds, `-` is idle: the instance of each step, from 1."""
    verdict = {"x": "violated", ".": "holds", "-": "idle"}
    return verdicts(
        *(
            decided(one, [step], subject="w", verdict=verdict[each])
            for step, each in enumerate(outcomes, 1)
        )
    )


@given(
    st.text("x.-", min_size=1, max_size=30),
    st.one_of(
        st.integers(1, 5).map(lambda count: {"consecutive": count}),
        st.tuples(st.integers(1, 4), st.integers(1, 8)).map(
            lambda both: {"frequent": both[0], "among": rules.Duration(both[1], "step")}
        ),
    ),
)
def test_a_check_says_what_a_job_says(outcomes: str, how: Any) -> None:
    one = waits(SMALL, **how)
    among = how.get("among")
    action = ActionRecord("warn", how.get("consecutive"), how.get("frequent"))
    action = replace(action, among=among and (among.count, among.unit))
    history = CheckHistory([action])
    in_job = {
        step
        for step, each in enumerate(outcomes, 1)
        if history.add(each == "x", each != "-", (step, 0))
    }
    left = without_waiting([one], of_steps(one, outcomes))
    assert {each.step for each in left.decided if each.verdict == "violated"} == in_job


def test_a_rule_that_waits_is_not_counted_as_violated() -> None:
    one = waits(SMALL, consecutive=5)
    found = report(program(one), of_steps(one, "xxxx.xxx"))
    assert found.findings == ()
    assert found.tallies[0].violated == 7
    text = StringIO()
    print_counts(found, Console(file=text, width=80))
    assert "nothing found\n1 rule: 0 violated, 0 held. 8 instances, 8 decided." in text.getvalue()
    assert "1 violated in fewer steps than their action asks for:\n  small" in text.getvalue()
    [case] = from_report(found, program(one)).cases
    assert (case.state, case.message) == (
        "skipped",
        "violated in fewer steps than its action asks for",
    )


@pytest.mark.parametrize("draft", [False, True])
def test_where_something_is_due_at_once_all_is_said(draft: bool) -> None:
    one = replace(waits(SMALL, consecutive=2), draft=draft)
    if not draft:
        one = replace(one, responses=(rules.Response("warn"), *one.responses))
    [finding] = report(program(one), of_steps(one, "x.")).findings
    assert finding.step == 1


def test_an_action_after_epochs_is_due_at_once_elsewhere() -> None:
    one = waits(SMALL, frequent=2, among=rules.Duration(3, "epoch"))
    [finding] = report(program(one), of_steps(one, "x")).findings
    assert finding.step == 1

"""Schedules of steps: which steps they check, and how they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tspec.schedule import FIRST, StepSchedule, canonical, schedule_of

SCHEDULES = st.integers(1, 40).flatmap(
    lambda period: st.builds(
        StepSchedule, st.integers(1, period), st.just(period), st.integers(0, 30)
    )
)


def test_the_first_steps_are_checked_and_then_a_part_of_each_period() -> None:
    schedule = schedule_of("25/500")
    checked = [step for step in range(1, 1100) if schedule.checks(step, 1)]
    assert checked == [*range(1, FIRST + 1), *range(500, 525), *range(1000, 1025)]


def test_the_first_steps_of_a_resumed_run_are_checked() -> None:
    schedule = schedule_of("1/1000")
    checked = [step for step in range(701, 2100) if schedule.checks(step, 701)]
    assert checked == [*range(701, 801), 1000, 2000]


@given(SCHEDULES, st.integers(1, 99), st.integers(0, 99), st.integers(0, 99))
def test_a_step_between_is_left_out_if_one_is(
    schedule: StepSchedule, first: int, before: int, further: int
) -> None:
    left_out = [
        step
        for step in range(before, before + further + 1)
        if not schedule.checks(step, first) and before < step < before + further
    ]
    assert schedule.leaves_out_between(before, before + further, first) == bool(left_out)


@given(SCHEDULES)
def test_a_schedule_is_read_as_it_is_written(schedule: StepSchedule) -> None:
    assert schedule_of(f" {schedule} ") == StepSchedule(schedule.length, schedule.period)


@pytest.mark.parametrize(
    ("text", "written"), [("25/500", "25/500"), (" 1 / 20", "1/20"), ("1/1", ""), ("7/7", "")]
)
def test_a_schedule_of_all_steps_is_none(text: str, written: str) -> None:
    assert canonical(text) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("25", "'25' is not of the form 25/500: 25 of each 500 steps"),
        ("5%", "'5%' is not of the form 25/500: 25 of each 500 steps"),
        ("-1/5", "'-1/5' is not of the form 25/500: 25 of each 500 steps"),
        ("0/5", "0/5: at least 1 and at most 5 of 5 steps can be checked"),
        ("6/5", "6/5: at least 1 and at most 5 of 5 steps can be checked"),
        ("1/0", "1/0: at least 1 and at most 0 of 0 steps can be checked"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        schedule_of(text)
    assert str(refused.value) == message

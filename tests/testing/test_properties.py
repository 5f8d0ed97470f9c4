"""What holds for random rules on random jobs: coverage counts what the interpreter decides, as every executor does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.check.jobs import job
from tests.check.strategies import case, loaded, spec
from tests.why.test_part import written
from tspec.check.interpret import decide_again, decide_rule, interpret, job_of
from tspec.resolve.program.rules import Holds
from tspec.testing.coverage import VerdictCounts, conditions, count_recording, coverage
from tspec.testing.mutants import mutants
from tspec.why.look import look


@pytest.mark.parametrize("number", range(100, 120))
def test_coverage_of_a_recording_is_the_interpreters_tally(number: int, tmp_path: Path) -> None:
    body, shape = case(number)
    (rule,) = loaded(spec([body]))
    trace = job(shape)
    counts = VerdictCounts()
    count_recording(written(trace, tmp_path / "run"), [rule], counts)
    shutil.rmtree(tmp_path / "run")
    verdicts = [each.verdict for each in interpret([rule], trace).decided]
    (found,) = coverage([rule], counts).rules
    assert {v: verdicts.count(v) for v in found.verdicts} == dict(found.verdicts)
    for seen in found.conditions:
        alone = [each.verdict for each in interpret([seen.condition.alone], trace).decided]
        false = "idle" if seen.condition.clause == "when" else "violated"
        assert (seen.true, seen.false) == (alone.count("holds"), alone.count(false)), body


@pytest.mark.parametrize("number", range(200, 260))
def test_changes_of_conditions_leave_the_instances_alone(number: int) -> None:
    body, shape = case(number)
    (rule,) = loaded(spec([body]))
    asked = job_of(job(shape))
    found = [grouped for grouped, _ in decide_rule(rule, asked)]
    for mutant in mutants(rule):
        if not mutant.same_instances:
            continue
        again = [each.verdict for _, each in decide_again(mutant.rule, found)]
        anew = [each.verdict for _, each in decide_rule(mutant.rule, asked)]
        assert again == anew, (body, mutant.before, mutant.after)


@pytest.mark.parametrize("number", range(300, 360))
def test_what_fired_is_at_no_distance_and_what_held_at_some(number: int) -> None:
    body, shape = case(number)
    (rule,) = loaded(spec([body]))
    for grouped, each in decide_rule(rule, job_of(job(shape))):
        found = look(rule, grouped, each)
        assert found.decided is each
        if each.verdict == "violated":
            assert (found.unmet, found.off) == (0, 0.0)
        elif each.verdict == "idle" and found.clause == "when":
            assert found.unmet > 0
        assert found.said()


def test_conditions_are_those_of_the_rule() -> None:
    (rule,) = loaded(spec(["  each step\n  when step > 2 and not step == 4\n  expect step > 0"]))
    assert isinstance(rule.expect, Holds)
    assert [each.text for each in conditions(rule)] == ["step > 2", "step == 4"]

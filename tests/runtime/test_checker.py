"""Generated hooks in a real loop: findings, actions, and faults that stay inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.runtime.training import Trained, loop, module, train
from tspec.runtime.actions import JobStopped, RuleViolated

HUGE = "before optimizer.step\nexpect norm(parameters.grad) < 100\n"


def blow_up(at: int) -> Any:
    def disturb(step: int, model: nn.Module) -> None:
        if step == at:
            assert model.get_parameter("weight").grad is not None
            model.get_parameter("weight").grad.fill_(1e6)  # type: ignore[union-attr]

    return disturb


def test_a_clean_run_finds_nothing_and_changes_nothing() -> None:
    done = train(module(HUGE + "else warn"), steps=3)
    plain = Trained()
    torch.manual_seed(0)
    loop(plain, 3, None)
    assert done.found == []
    assert all(torch.equal(a, b) for a, b in zip(done.weights, plain.weights, strict=True))
    assert done.checker is not None
    assert done.checker.rules[0].counts == {"holds": 3, "violated": 0, "idle": 0, "unknown": 0}


def test_a_finding_names_rule_place_step_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    done = train(module(HUGE + "else warn"), disturb=blow_up(4))
    [found] = done.found
    assert (found["rule"], found["step"], found["rank"], found["subject"]) == ("t.r0", 4, 0, "")
    assert float(found["values"]["norm(parameters.grad)"]) > 1e6
    shown = capsys.readouterr().err
    assert "tspec: step 4 rank 0: t.r0 (<text>:7)" in shown
    assert shown.count("tspec: step") == 1
    assert "tspec: t.r0 (<text>:7): violated in 1 of 4 decided instances\n" in shown


def test_findings_are_written_as_they_come_and_counts_at_the_end(tmp_path: Path) -> None:
    train(module(HUGE + "else warn"), disturb=blow_up(4), folder=tmp_path)
    [lines] = [json.loads(p.read_text()) for p in tmp_path.glob("*.jsonl")]
    assert lines["step"] == 4
    [counts] = [json.loads(p.read_text()) for p in tmp_path.glob("*.counts.json")]
    assert counts["counts"]["t.r0"]["violated"] == 1
    assert counts["counts"]["t.r0"]["holds"] == 3


def test_skip_leaves_out_the_update_of_that_step_only() -> None:
    done = train(module(HUGE + "else skip"), disturb=blow_up(2))
    assert torch.equal(done.weights[1], done.weights[2])
    assert not torch.equal(done.weights[2], done.weights[3])
    assert len(done.found) == 1


def test_skip_is_decided_by_what_was_seen_earlier_in_the_step() -> None:
    rule = "for c in calls(backward)\nexpect c.loss.requires_grad == false\nelse skip"
    done = train(module(rule), steps=2)
    assert torch.equal(done.weights[0], done.weights[2])


def test_stop_ends_the_process_before_the_update(capsys: pytest.CaptureFixture[str]) -> None:
    done = Trained()
    hooks = module(HUGE + "else stop").install(callback=done.found.append)
    with pytest.raises(JobStopped) as stopped, hooks:
        torch.manual_seed(0)
        loop(done, 4, blow_up(2))
    assert stopped.value.code == 1
    assert len(done.losses) == 1
    assert "stopped in step 2 by t.r0 (<text>:7)" in capsys.readouterr().err
    assert len(done.found) == 1


def test_raise_is_an_exception_that_names_the_rule() -> None:
    with pytest.raises(RuleViolated, match=r"step 2: t\.r0"):
        train(module(HUGE + "else raise"), disturb=blow_up(2))


def test_rollback_stops_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(JobStopped):
        train(module(HUGE + "else rollback"), disturb=blow_up(2))
    assert "no good state is kept yet" in capsys.readouterr().err


def test_a_draft_warns_whatever_it_says() -> None:
    done = train(module(f"draft invariant d {{\n{HUGE}else stop\n}}\n"), disturb=blow_up(4))
    assert len(done.losses) == 4
    assert len(done.found) == 1


def test_a_condition_for_the_action_keeps_quiet_before_it() -> None:
    rule = HUGE + "else warn after 2 consecutive steps"
    assert train(module(rule), disturb=blow_up(4)).found == []
    assert len(train(module(rule), disturb=blow_up(2)).found) == 2


def test_a_fault_in_a_rule_switches_it_off_and_training_goes_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = module(HUGE + "else stop", "after optimizer.step\nexpect loss > 0\nelse warn")

    def broken(rule: Any, window: Any) -> None:
        raise ZeroDivisionError("made for the test")

    name = next(name for name in vars(hooks) if name.startswith("r0_"))
    monkeypatch.setitem(vars(hooks), name, broken)
    done = train(hooks)
    shown = capsys.readouterr().err
    assert len(done.losses) == 4
    assert shown.count("t.r0 (<text>:7) is switched off") == 1
    assert "ZeroDivisionError: made for the test" in shown
    assert done.checker is not None
    assert not done.checker.rules[0].on
    assert done.checker.rules[1].counts["holds"] == 4


def test_history_works_in_a_running_job() -> None:
    rule = "each step\nwhen step > 1\nexpect loss < previous(loss)\nelse warn"
    done = train(module(rule), steps=4)
    assert done.checker is not None
    assert done.checker.rules[0].counts["holds"] == 3


def test_once_is_decided_once_for_each_subject() -> None:
    done = train(module("for p in parameters\nbefore optimizer.step once\nexpect p.requires_grad"))
    assert done.checker is not None
    assert done.checker.rules[0].counts["holds"] == 2


def test_old_and_changes_are_seen() -> None:
    rule = "for p in parameters\nduring optimizer.step\nexpect changed(p.data) and norm(p.data) != old(norm(p.data))"
    done = train(module(rule), steps=3)
    assert done.checker is not None
    assert done.checker.rules[0].counts == {"holds": 6, "violated": 0, "idle": 0, "unknown": 0}


def test_what_is_found_at_the_end_of_the_run_is_told_and_stops_nothing() -> None:
    done = train(module("each step\nexpect step < 4\nelse stop"))
    assert len(done.losses) == 4
    assert [one["rule"] for one in done.found] == ["t.r0"]


def test_a_fork_starts_over_and_a_loaders_worker_checks_nothing() -> None:
    installed = module(HUGE + "else warn").install()
    with installed as checker:
        loop(Trained(), 3, None)
        assert checker.rules[0].counts["holds"] == 3
        assert installed.job is not None
        installed.job.forked(None)
        loop(Trained(), 2, None)
        assert checker.rules[0].counts["holds"] == 2
        installed.job.forked(0)
        loop(Trained(), 2, None)
        assert checker.rules[0].counts["holds"] == 2


def test_what_a_fork_saves_is_of_the_step_that_forked_it(tmp_path: Path) -> None:
    """A writer of checkpoints makes no steps; a rank that was forked makes its own, from the first."""
    steps: list[int] = []
    rule = module("before save\nexpect step == 9\nelse warn")
    installed = rule.install(callback=lambda found: steps.append(found["step"]))
    with installed:
        model = Trained()
        loop(model, 3, None)
        assert installed.job is not None
        installed.job.forked(None)
        torch.save({"weights": model.weights}, tmp_path / "by_the_writer.pt")
        with torch.no_grad():
            nn.Linear(2, 2)(torch.ones(1, 2))
        torch.save({"weights": model.weights}, tmp_path / "after_a_look.pt")
        loop(model, 2, None)
        torch.save({"weights": model.weights}, tmp_path / "by_the_rank.pt")
    assert steps == [3, 3, 2]

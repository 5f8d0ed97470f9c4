"""What a plan says of rules: what is read where, what decides alone, what is known without reading."""

from __future__ import annotations

from tspec.plan.build import build
from tspec.plan.model import Plan, RulePlan
from tspec.plan.reads import SubjectField
from tspec.resolve import load_text
from tspec.resolve.program import rules
from tspec.resolve.program.text import claim_text, text

HEAD = "edition 2026\n\nmodule t\n\nuse std.torch\n\n"


def plan(*bodies: str, **given: object) -> Plan:
    text = HEAD + "".join(f"invariant r{n} {{\n{body}\n}}\n" for n, body in enumerate(bodies))
    loaded = load_text(text)
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    return build(loaded.program, given)


def one(body: str) -> RulePlan:
    [found] = plan(body).rules
    return found


def columns(found: RulePlan) -> set[tuple[str, str, str, tuple[str, ...]]]:
    return {(c.frame, c.kind, c.name, c.features) for c in found.reads.columns}


def test_features_are_known_before_the_run() -> None:
    found = one(
        "for p in parameters\nbefore optimizer.step\nwhen present(p.grad)\nexpect finite(p.grad)"
    )
    assert columns(found) == {("now", "parameter", "grad", ("finite",))}
    assert found.alone


def test_old_is_read_at_the_start() -> None:
    found = one(
        "for p in parameters\nduring optimizer.step\nexpect norm(p.data) > old(norm(p.data))"
    )
    assert columns(found) == {
        ("now", "parameter", "data", ("norm",)),
        ("was", "parameter", "data", ("norm",)),
    }
    assert found.reads.reads_start


def test_the_condition_of_a_during_is_read_at_its_start() -> None:
    found = one(
        "for p in parameters\nduring optimizer.step\nwhen present(p.grad) and zeros(p.grad) < 10%\nexpect step < 9"
    )
    assert ("was", "parameter", "grad", ("numel", "zeros")) in columns(found)


def test_comparing_tensors_needs_their_digests() -> None:
    found = one("for p in parameters\nacross world\nafter optimizer.step\nexpect same(p.data)")
    assert SubjectField("now", "parameter", "data", ("digest",)) in found.reads.columns
    assert not found.alone


def test_first_samples_are_a_frame_of_their_own() -> None:
    found = one("for p in parameters\neach step\nexpect p.names == first(p.names)")
    assert {c.frame for c in found.reads.columns} == {"now", "first"}
    assert found.alone
    assert not found.history


def test_look_backs_are_not_decided_alone() -> None:
    found = one("each step\nexpect loss <= mean(previous(loss), over: 5 steps)")
    assert found.history
    assert not found.alone


def test_a_guard_is_what_context_and_the_call_decide() -> None:
    found = one(
        "for c in calls(forward)\nwhen step > 3 and c.module.root and finite(c.output)\nexpect step < 9"
    )
    assert found.guard is not None
    assert text(found.guard) == "step > 3 and c.module.root"


def test_functions_of_context_are_part_of_a_guard() -> None:
    found = one(
        "before optimizer.step\nwhen divisible(step, by: 10) and present(loss)\n"
        "expect zeros(parameters.grad) < 90%"
    )
    assert found.guard is not None
    assert text(found.guard) == "divisible(step, by: 10) and present(loss)"


def test_a_let_of_several_conditions_gives_its_parts_to_the_guard() -> None:
    loaded = load_text(
        HEAD + "let late = step > 3 and count(models) > 0\n"
        "invariant r {\neach step\nwhen late and present(loss)\nexpect step < 9\n}\n"
    )
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    [found] = build(loaded.program, {}).rules
    assert found.guard is not None
    assert text(found.guard) == "step > 3 and present(loss)"


def test_history_has_no_guard_as_it_needs_every_value() -> None:
    assert one("each step\nwhen step > 3\nexpect loss < previous(loss)").guard is None


def test_history_is_not_read_after_the_last_step_of_a_condition() -> None:
    found = one(
        "each step\nwhen step > 3 and step < 9 and 20 >= run.step and loss > 0\nexpect loss < previous(loss)"
    )
    assert found.guard is not None
    assert text(found.guard) == "step < 9 and 20 >= run.step"


def test_first_alone_has_a_guard_where_all_instances_share_a_history() -> None:
    text_ = "during optimizer.step\nwhen step <= 20\nexpect norm(parameters.data) <= {}"
    assert one(text_.format("10 * first(old(norm(parameters.data)))")).guard is not None
    later = text_.replace("step <= 20", "step > 20")
    assert one(later.format("first(loss) + previous(loss)")).guard is None


def test_reads_of_several_rules_are_joined() -> None:
    found = plan(
        "for c in calls(backward)\nexpect finite(c.loss)",
        "for c in calls(backward)\nexpect norm(c.loss) < 9",
    )
    assert found.kept["backward"]["loss"] == (("finite", "norm"), False)
    assert found.logged == ()


def test_calls_that_are_looked_up_later_are_logged() -> None:
    found = plan("each step\nexpect same(calls(cross_entropy).loss)")
    assert found.logged == ("cross_entropy",)
    assert found.kept["cross_entropy"]["loss"][1]


def test_groups_of_one_are_left_out() -> None:
    body = "for p in parameters\nacross dp\neach step\nexpect same(p.data)"
    assert plan(body, dp=1).rules == ()
    assert len(plan(body, dp=2).rules) == 1


def test_a_skip_watches_updates() -> None:
    found = plan("for c in calls(backward)\nexpect finite(c.loss)\nelse skip")
    assert "optimizer.step" in found.kept


def test_claims_are_spelled_as_they_are_written() -> None:
    for claim in (
        "expect backward before optimizer.step",
        "expect contains optimizer.zero_grad",
        "expect changed(p.data) only during optimizer.step or load_state_dict",
        "expect mean(previous(norm(p.data)), over: 5 steps) < 3",
    ):
        [found] = plan(f"for p in parameters\neach step\n{claim}").rules
        assert isinstance(found.rule, rules.Rule)
        assert f"expect {claim_text(found.rule.expect)}" == claim

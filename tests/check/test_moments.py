"""`docs/design/semantics.md`, "Values": a test for each line on `over`, `previous`, `first`, `old`."""

from __future__ import annotations

from tests.check.building import Writer, decide, losses, tensor, verdicts
from tspec.trace.model import Missing

UNKNOWN = Missing.NOT_RECORDED


def test_over_folds_this_and_the_earlier_instances() -> None:
    out = losses(1.0, 2.0, 3.0, 4.0)
    assert verdicts("each step expect sum(loss, over: 2 steps) == 5", out) == [
        "unknown", "violated", "holds", "violated",
    ]  # fmt: skip
    assert verdicts("each step expect sum(loss, over: 1 step) == loss", out) == ["holds"] * 4


def test_over_counts_idle_instances() -> None:
    rule = "each step when step != 2 expect sum(loss, over: 2 steps) == 5"
    assert verdicts(rule, losses(1.0, 2.0, 3.0)) == ["unknown", "idle", "holds"]


def test_over_is_decided_early_by_some_values() -> None:
    out = losses(1.0, 1.0, 2.0)
    for fold, first, second in (
        ("any(loss == 1, over: 9 steps)", "holds", "holds"),
        ("any(loss == 9, over: 9 steps)", "unknown", "unknown"),
        ("all(loss == 9, over: 9 steps)", "violated", "violated"),
        ("all(loss == 1, over: 9 steps)", "unknown", "unknown"),
        ("distinct(loss, over: 9 steps)", "unknown", "violated"),
        ("same(loss, over: 9 steps)", "unknown", "unknown"),
    ):
        assert verdicts(f"each step expect {fold}", out)[:2] == [first, second], fold
    assert verdicts("each step expect same(loss, over: 9 steps)", out)[2] == "violated"


def test_a_missing_value_in_time_is_unknown() -> None:
    out = losses(1.0, UNKNOWN, 1.0)
    assert verdicts("each step expect sum(loss, over: 2 steps) > 0", out) == ["unknown"] * 3


def test_the_reason_in_time_is_that_of_the_first_missing_value() -> None:
    """In the second step the value of the first has no history yet, and its own is not recorded."""
    for claim in (
        "any(previous(loss) == 9, over: 2 steps)",
        "same(previous(loss), over: 2 steps)",
        "count(previous(loss), over: 2 steps) == 9",
    ):
        found = decide(f"each step expect {claim}", losses(UNKNOWN, 1.0)).decided
        assert [each.reason for each in found] == ["no history yet"] * 2, claim


def test_thinned_windows_are_complete_by_their_stride() -> None:
    out = losses(*[1.0] * 6)
    rule = "each step every 2 steps expect count(loss > 0, over: 4 steps) == 2"
    assert verdicts(rule, out) == ["unknown", "holds", "holds"]


def test_epochs_and_microbatches_count_in_their_own_unit() -> None:
    out = Writer()
    for epoch in range(3):
        out.epoch(epoch)
        out.step(epoch + 1)
        for index in range(2):
            out.microbatch(index)
            out.call("backward")
    out.finish()
    rule = "each epoch expect count(step > 0, over: 2 epochs) == 2"
    assert verdicts(rule, out) == ["unknown", "holds", "holds"]
    rule = "each microbatch expect count(step > 0, over: 3 microbatches) == 3"
    assert verdicts(rule, out) == ["unknown", "unknown", "holds", "holds", "holds", "holds"]


def test_previous_is_the_instance_before() -> None:
    out = losses(1.0, 2.0, 3.0)
    rule = "each step expect loss == previous(loss) + 1"
    assert verdicts(rule, out) == ["unknown", "holds", "holds"]


def test_previous_is_of_the_same_subject() -> None:
    out = Writer()
    for step in (1, 2):
        out.step(step)
        for name in "ab":
            out.call("backward")
            out.sample("parameter", name, lr=float(step))
    out.finish()
    rule = "for p in parameters each step expect p.lr == previous(p.lr) + 1"
    assert verdicts(rule, out) == ["unknown", "unknown", "holds", "holds"]


def test_first_of_an_entity_is_its_first_sample() -> None:
    out = Writer()
    out.sample("parameter", "w", lr=1.0)
    out.step(1)
    out.call("backward")
    out.sample("parameter", "w", lr=2.0, order=5)
    out.finish()
    assert verdicts("for p in parameters each step expect first(p.lr) == 1", out) == ["holds"]
    assert verdicts("for p in parameters each step expect first(p.order) == 5", out) == ["holds"]
    rule = "for p in parameters before backward expect first(p.order) == 5"
    assert verdicts(rule, out) == ["unknown"]


def test_first_of_anything_else_is_that_of_the_first_instance() -> None:
    assert verdicts("each step expect first(loss) == 1", losses(1.0, 2.0)) == ["holds", "holds"]


def test_first_of_a_call_is_that_of_the_first_call() -> None:
    out = Writer()
    for step in (1, 2):
        out.step(step)
        for lr in (1.0, 2.0):
            out.call("optimizer.step", lr=lr * step)
    out.finish()
    rule = "for c in calls(optimizer.step) expect c.lr == first(c.lr)"
    assert verdicts(rule, out) == ["holds", "violated", "violated", "violated"]


def test_moments_nest() -> None:
    out = losses(1.0, 2.0, 3.0)
    rule = "each step expect mean(previous(loss), over: 2 steps) == 1.5"
    assert verdicts(rule, out) == ["unknown", "unknown", "holds"]
    for rule in ("old(previous(loss)) == 1", "previous(old(loss)) == 1"):
        assert verdicts(f"each step expect {rule}", out) == ["unknown", "unknown", "holds"]


def test_old_of_a_group_fold_is_the_fold_of_the_starts() -> None:
    ranks = []
    for rank in (0, 1):
        out = Writer(rank)
        out.sample("parameter", "w", data=tensor(1))
        out.step(1)
        out.call("backward")
        out.sample("parameter", "w", data=tensor(rank))
        out.finish()
        ranks.append(out)
    rule = (
        "for p in parameters across world each step expect old(same(p.data)) and not same(p.data)"
    )
    assert verdicts(rule, *ranks) == ["holds"]


def test_a_look_back_at_a_rank_that_lacked_the_instance_is_not_recorded() -> None:
    ranks = []
    for rank in (0, 1):
        out = Writer(rank)
        out.sample("parameter", "w", data=tensor(1))
        for step in (1, 2, 3):
            out.step(step)
            out.call("backward")
            if rank == 1 and step < 3:
                out.sample("parameter", "w", gone=step == 1)
        out.finish()
        ranks.append(out)
    rule = "for p in parameters across world each step expect previous(same(p.data))"
    assert verdicts(rule, *ranks)[1] == "unknown"


def test_calls_that_returned_are_told_from_those_under_way() -> None:
    out = Writer()
    out.step(1)
    with out.calling("optimizer.step", lr=0.1):
        out.call("clip")
    out.step(2)
    out.call("optimizer.step", lr=0.1, result={"returned": True})
    out.call("clip")
    out.step(3)
    out.call("optimizer.step", lr=0.1)
    out.call("clip")
    out.finish()
    count = "count(calls(optimizer.step, returned: true))"
    assert verdicts(f"before clip expect {count} == 1", out) == ["violated", "holds", "violated"]
    assert verdicts("before clip expect count(calls(optimizer.step)) == 1", out) == ["holds"] * 3

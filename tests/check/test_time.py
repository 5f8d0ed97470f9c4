"""`docs/design/semantics.md`, "Time": a test for each line."""

from __future__ import annotations

from tests.check.building import Writer, decide, table, tensor, value_is, verdicts
from tspec.trace.model import Missing, Ref

STEP = "each step\n"


def job() -> Writer:
    """One step with an update that changes p.data from 1 to 2 and raises the loss from 1 to 2."""
    out = Writer()
    out.sample("parameter", "w", data=tensor(1), requires_grad=True)
    out.step(1)
    out.ambient(loss=1.0)
    out.begin("optimizer.step", lr=0.5)
    out.end()
    out.sample("parameter", "w", data=tensor(2))
    out.ambient(loss=2.0)
    out.step(2)
    out.finish()
    return out


def test_a_field_is_what_was_last_sampled() -> None:
    assert verdicts("each step expect loss == 2", job()) == ["holds", "holds"]
    assert verdicts("before optimizer.step expect loss == 1", job()) == ["holds"]
    assert verdicts("after optimizer.step expect loss == 2", job()) == ["holds"]


def test_without_a_sample_it_is_not_recorded() -> None:
    out = Writer()
    out.step(1)
    out.finish()
    assert [d.reason for d in decide("each step expect loss > 0", out).decided] == ["not recorded"]


def test_a_feature_that_a_sample_lacks_is_not_recorded() -> None:
    found = decide("for p in parameters each step expect norm(p.data) > 0", job())
    assert {(each.verdict, each.reason) for each in found.decided} == {("unknown", "not recorded")}


def test_absent_is_not_unknown() -> None:
    out = Writer()
    out.step(1)
    out.sample("parameter", "w", grad=Missing.ABSENT)
    out.sample("parameter", "v")
    out.finish()
    found = decide("for p in parameters each step expect present(p.grad)", out)
    assert table(found) == {((1, 0), "w"): "violated", ((1, 0), "v"): "unknown"}


def test_result_fields_are_known_when_the_call_has_returned() -> None:
    out = Writer()
    out.step(1)
    out.call("clip", {"total_norm": 2.0}, max_norm=1.0)
    out.finish()
    assert verdicts("during clip expect clip.total_norm == 2", out) == ["holds"]
    assert verdicts("before clip expect clip.max_norm == 1", out) == ["holds"]


def test_fields_of_the_windows_call_do_not_move() -> None:
    out = Writer()
    out.step(1)
    out.call("clip", {"total_norm": 2.0}, max_norm=1.0)
    out.finish()
    assert verdicts("during clip expect old(clip.total_norm) == 2", out) == ["holds"]


def test_subjects_exist_from_their_first_sample_until_they_are_gone() -> None:
    out = Writer()
    out.sample("parameter", "a")
    out.step(1)
    out.sample("parameter", "b")
    out.step(2)
    out.call("backward")
    out.sample("parameter", "a", gone=True)
    out.step(3)
    out.call("backward")
    out.sample("parameter", "a")
    out.finish()
    found = decide("for p in parameters each step expect step > 0", out)
    assert sorted(table(found)) == [
        ((1, 0), "a"), ((1, 0), "b"), ((2, 0), "b"), ((3, 0), "a"), ((3, 0), "b"),
    ]  # fmt: skip


def test_a_sample_at_the_closing_boundary_counts() -> None:
    out = Writer()
    out.step(1)
    out.step(2)
    out.sample("parameter", "a", gone=False)
    out.finish()
    found = decide("for p in parameters each step expect step > 0", out)
    assert sorted(table(found)) == [((1, 0), "a"), ((2, 0), "a")]


def test_subjects_are_in_the_order_of_their_first_samples() -> None:
    out = Writer()
    out.step(1)
    for name, lr in (("z", 1.0), ("a", 2.0)):
        out.sample("param_group", name, lr=lr)
    out.sample("optimizer", "o", param_groups=(Ref("param_group", "a"),))
    out.finish()
    same = "each step expect param_groups.lr == [1.0, 2.0]"
    assert verdicts(same, out) == ["holds"]


def test_a_set_is_read_in_the_order_of_its_subjects() -> None:
    out = Writer()
    out.step(1)
    out.sample("parameter", "z", data=tensor(1))
    out.sample("parameter", "a", data=tensor(2))
    out.sample("module", "m", parameters=frozenset({Ref("parameter", n) for n in "az"}))
    out.finish()
    rule = "for m in modules each step expect digest(m.parameters.data) == digest(parameters.data)"
    assert verdicts(rule, out) == ["holds"]


def test_batches_last_for_their_step() -> None:
    out = Writer()
    for step in (1, 2):
        out.step(step)
        out.call("fetch")
        out.sample("batch", f"batch {step}", tensors=(tensor(step),))
        out.call("optimizer.step")
    out.finish()
    found = decide("for b in batches each step expect count(b.tensors) == 1", out)
    assert table(found) == {((1, 0), "#0"): "holds", ((2, 0), "#0"): "holds"}
    assert verdicts("before optimizer.step expect count(batches) == 1", out) == ["holds", "holds"]
    assert verdicts("before fetch expect count(batches) == 0", out) == ["holds", "holds"]
    assert verdicts("during fetch expect count(batches) == 1", out) == ["holds", "holds"]


def test_subjects_of_a_cut_off_window_are_those_at_the_last_record() -> None:
    out = Writer()
    out.step(1)
    out.sample("parameter", "a")
    found = decide("for p in parameters each step expect step > 0", out)
    assert table(found) == {((1, 0), "a"): "unknown"}


def test_step_zero_is_no_window() -> None:
    out = Writer()
    out.step(0)
    out.step(1)
    out.finish()
    assert list(table(decide("each step expect step >= 0", out))) == [((1, 0),)]


def test_spans_close_at_the_next_boundary_of_their_kind_or_at_finish() -> None:
    out = Writer()
    out.epoch(0)
    for step in (1, 2):
        out.step(step)
        for index in (0, 1):
            out.microbatch(index)
            out.call("backward")
    out.epoch(1)
    out.finish()
    one = "expect count(calls(backward)) == 1"
    assert table(decide(f"each microbatch {one}", out)) == {
        ((step, index),): "holds" for step in (1, 2) for index in (0, 1)
    }
    four = "expect count(calls(backward)) == 4"
    assert table(decide(f"each epoch {four}", out)) == {((0, 0),): "holds", ((1, 0),): "violated"}
    assert table(decide(f"each run {four}", out)) == {((0, 0),): "holds"}


def test_calls_belong_to_the_span_in_which_they_begin() -> None:
    out = Writer()
    out.step(1)
    out.begin("backward")
    out.step(2)
    out.end()
    out.finish()
    rule = "each step expect count(calls(backward)) == 1"
    assert verdicts(rule, out) == ["holds", "violated"]


def test_context_of_a_span_is_read_just_before_it_closes() -> None:
    out = Writer()
    out.step(1)
    out.now(phase="eval")
    out.call("backward")
    out.now(phase="train")
    out.step(2)
    out.finish()
    assert verdicts("each step expect phase == eval and step == 1", out) == ["holds", "violated"]


def test_state_is_read_as_of_the_close_and_old_state_as_of_the_opening() -> None:
    out = Writer()
    out.step(1)
    out.ambient(loss=1.0)
    out.call("backward")
    out.ambient(loss=2.0)
    out.step(2)
    out.ambient(loss=3.0)
    out.finish()
    assert verdicts("each step expect old(loss) == 1 and loss == 3", out)[0] == "holds"
    assert verdicts("each step expect old(step) == step", out) == ["holds", "holds"]


def test_during_reads_the_end_and_when_the_begin() -> None:
    changed = "for p in parameters during optimizer.step expect changed(p.data)"
    assert verdicts(changed, job()) == ["holds"]
    assert verdicts("during optimizer.step when loss == 1 expect loss == 2", job()) == ["holds"]


def test_calls_windows_read_when_at_the_end() -> None:
    rule = "for c in calls(optimizer.step) when loss == 2 expect old(loss) == 1"
    assert verdicts(rule, job()) == ["holds"]


def test_a_call_is_not_in_its_own_window() -> None:
    out = Writer()
    out.step(1)
    with out.calling("forward"):
        out.call("forward")
        out.call("forward")
    out.finish()
    assert verdicts("during forward expect count(calls(forward)) == 2", out) == ["holds"]
    assert verdicts("during forward expect contains forward", out) == ["holds"]


def test_a_window_without_end_is_unknown() -> None:
    out = Writer()
    out.step(1)
    out.ambient(loss=1.0)
    out.begin("optimizer.step")
    for rule in ("each step", "each run", "during optimizer.step"):
        found = decide(f"{rule} expect loss == 1", out)
        assert [(d.verdict, d.reason) for d in found.decided] == [("unknown", "cut off")]
    assert verdicts("for c in calls(optimizer.step) expect loss == 1", out) == ["unknown"]
    assert verdicts("before optimizer.step expect loss == 1", out) == ["holds"]
    assert verdicts("after optimizer.step expect loss == 1", out) == []


def test_what_a_cut_off_window_decided_stays() -> None:
    out = Writer()
    out.step(1)
    out.call("backward")
    assert verdicts("each step expect contains backward", out) == ["holds"]
    assert verdicts("each step expect contains clip", out) == ["unknown"]
    assert verdicts("each step expect clip before backward", out) == ["violated"]
    assert verdicts("each step expect backward before clip", out) == ["unknown"]
    assert verdicts("each step when step > 0 expect contains backward", out) == ["unknown"]


def test_a_call_that_raised_has_an_end() -> None:
    out = Writer()
    out.step(1)
    out.ambient(loss=1.0)
    out.begin("optimizer.step")
    out.end(error="ValueError")
    out.finish()
    assert verdicts("during optimizer.step expect loss == 1", out) == ["holds"]


def test_only_the_outermost_of_nested_calls_counts() -> None:
    out = Writer()
    out.step(1)
    with out.calling("optimizer.step", lr=1.0):
        out.call("optimizer.step", lr=2.0)
    out.finish()
    assert verdicts("during optimizer.step expect optimizer.step.lr == 1", out) == ["holds"]
    assert verdicts("each step expect count(calls(optimizer.step)) == 1", out) == ["holds"]
    assert verdicts("for c in calls(optimizer.step) expect c.lr == 1", out) == ["holds"]


def test_filters_apply_before_the_outermost_is_taken() -> None:
    out = Writer()
    out.step(1)
    with out.calling("optimizer.step", lr=1.0):
        out.call("optimizer.step", lr=2.0)
    out.finish()
    rule = "during optimizer.step(lr: 2.0) expect optimizer.step.lr == 2"
    assert verdicts(rule, out) == ["holds"]
    assert verdicts("each step expect count(calls(optimizer.step, lr: 2.0)) == 1", out) == ["holds"]


def test_filters_read_the_call_at_its_end() -> None:
    out = Writer()
    out.step(1)
    out.call("clip", {"total_norm": 2.0}, max_norm=1.0)
    out.finish()
    assert verdicts("after clip(total_norm: 2.0) expect step == 1", out) == ["holds"]
    assert verdicts("before clip(max_norm: 1.0) expect step == 1", out) == ["holds"]


def test_a_missing_filter_does_not_match() -> None:
    out = Writer()
    out.step(1)
    out.call("clip", max_norm=1.0)
    out.call("clip", max_norm=Missing.NOT_RECORDED)
    out.sample("parameter", "a", requires_grad=Missing.NOT_RECORDED)
    out.finish()
    assert verdicts("each step expect count(calls(clip, max_norm: 1.0)) == 1", out) == ["holds"]
    assert verdicts("during clip(max_norm: loss) expect step > 0", out) == []
    assert verdicts("for p in parameters(requires_grad: true) each step expect step > 0", out) == []


def test_a_field_of_an_event_is_that_of_the_last_call_that_ended_in_the_window() -> None:
    out = Writer()
    for step, norms in ((1, (3.0, 4.0)), (2, ())):
        out.step(step)
        for norm in norms:
            out.call("clip", {"total_norm": norm})
        out.call("optimizer.step")
    out.finish()
    assert verdicts("each step expect clip.total_norm == 4", out) == ["holds", "unknown"]
    before = "before optimizer.step expect clip.total_norm == 4"
    assert verdicts(before, out) == ["holds", "unknown"]
    assert verdicts("each step expect old(clip.total_norm) == 4", out) == ["unknown", "unknown"]


def test_every_takes_the_windows_that_it_divides() -> None:
    out = Writer()
    for step in range(1, 5):
        out.step(step)
        out.epoch(step)
        out.call("optimizer.step")
    out.finish()
    for window in ("each step every 2 steps", "before optimizer.step every 2 steps"):
        assert list(table(decide(f"{window} expect step > 0", out))) == [((2, 0),), ((4, 0),)]
    found = decide("each epoch every 2 epochs expect step > 0", out)
    assert list(table(found)) == [((2, 0),), ((4, 0),)]


def test_once_takes_the_first_window_of_each_subject() -> None:
    out = Writer()
    out.sample("parameter", "a")
    for step in (1, 2):
        out.step(step)
        out.call("optimizer.step")
        out.sample("parameter", "b")
    out.finish()
    found = decide("for p in parameters before optimizer.step once expect step > 0", out)
    assert sorted(table(found)) == [((1, 0), "a"), ((2, 0), "b")]


def test_workers_are_no_ranks() -> None:
    from dataclasses import replace

    from tests.check.building import rules
    from tspec.check.interpret import interpret
    from tspec.trace.model import Trace

    stream = job().stream()
    both = Trace((stream, replace(stream, worker=0)), 1)
    found = interpret(rules("each step expect step > 0"), both)
    assert len(found.decided) == 2


def test_a_run_that_was_killed_is_cut_off() -> None:
    out = Writer()
    out.step(1)
    assert value_is("step == 1", out) == "unknown"


def resumed() -> Writer:
    """A job that goes on from a checkpoint of ten steps."""
    out = Writer(step=10)
    out.call("optimizer.zero_grad")
    out.step(11)
    out.call("optimizer.step", lr=0.5)
    out.step(12)
    out.call("optimizer.step", lr=0.5)
    out.finish()
    return out


def test_the_first_step_of_a_run_is_1_also_of_one_that_is_resumed() -> None:
    assert verdicts("each step expect run.step == step - 10", resumed()) == ["holds", "holds"]
    rule = "during optimizer.step when run.step > 1 expect run.step == 2 and step == 12"
    assert verdicts(rule, resumed()) == ["idle", "holds"]


def test_before_the_first_step_of_a_run_its_number_is_0() -> None:
    assert verdicts(
        "before optimizer.zero_grad expect run.step == 0 and step == 10", resumed()
    ) == ["holds"]


def test_an_empty_step_at_the_runs_end_is_no_window() -> None:
    """Nor is what opened with it or in it; the step before it and the run are as always."""
    out = Writer()
    for step in (1, 2):
        out.epoch(step)
        out.step(step)
        out.microbatch(1)
        out.call("optimizer.step")
    out.step(3)
    out.epoch(3)
    out.microbatch(1)
    out.call("forward")
    out.finish(empty_step=True)
    for window in ("each step", "each epoch", "each microbatch"):
        rule = f"{window} expect contains optimizer.step"
        assert verdicts(rule, out) == ["holds", "holds"]
    assert verdicts("each run expect count(calls(optimizer.step)) == 2", out) == ["holds"]
    assert verdicts("before forward expect step == 3", out) == ["holds"]
    assert verdicts("each step every 3 steps expect contains forward", out) == []


def test_of_ranks_one_may_end_in_an_empty_step() -> None:
    """Another rank trains in that step: the first one has no such window."""
    ranks = []
    for rank in (0, 1):
        out = Writer(rank)
        out.sample("parameter", "w", data=tensor(1))
        out.step(1)
        out.step(2)
        out.finish(empty_step=rank == 0)
        ranks.append(out)
    rule = "for p in parameters across world each step expect same(p.data)"
    assert [each.verdict for each in decide(rule, *ranks).decided] == ["holds", "unknown"]

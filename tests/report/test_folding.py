"""One cause is one finding, with its consequences under it; two causes stay two."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.report import scenes
from tests.report.scenes import AFTER_UPDATE, BEFORE_UPDATE, decided, program, rule, verdicts
from tspec.report.build import report
from tspec.report.findings import Finding
from tspec.resolve.load import load, load_text
from tspec.resolve.program import rules


def names(finding: Finding) -> list[str]:
    return [one.rule.rpartition(".")[2] for one in finding.consequences]


CLEARED = rule("gradients_are_cleared", scenes.contains("optimizer.zero_grad"))
SMALL = rule("gradients_do_not_explode", scenes.below(), over="parameter", window=BEFORE_UPDATE)
FINITE = rule(
    "gradients_are_finite", scenes.below("finite"), over="parameter", window=BEFORE_UPDATE
)
WEIGHTS_FINITE = rule(
    "parameters_are_finite", scenes.below("finite", "data"), over="parameter", window=AFTER_UPDATE
)
ALIKE = rule("replicas_agree", scenes.alike(), over="parameter", window=AFTER_UPDATE, across=True)
MOVES = rule(
    "optimizer_updates_parameters", scenes.changes(), over="parameter", window=AFTER_UPDATE
)
HELD = rule(
    "optimizers_hold_all_parameters",
    scenes.own_field("optimizer", "parameters"),
    over="parameter",
    window=BEFORE_UPDATE,
)
DROPOUT = rule(
    "dropout_is_off_in_evaluation", scenes.call_field("dropout", "training"), over="calls:dropout"
)
ZEROES = rule("step_contains_foreach_zero", scenes.contains("torch._foreach_zero_"), draft=True)


def test_one_forgotten_zero_grad_is_one_headline() -> None:
    found = report(
        program(SMALL, CLEARED, FINITE, ZEROES),
        verdicts(
            decided(ZEROES, range(2, 40)),
            decided(CLEARED, range(2, 40)),
            decided(SMALL, range(9, 40), subject="conv.weight"),
            decided(SMALL, range(12, 40), subject="fc.weight"),
            decided(FINITE, range(30, 40), subject="fc.weight"),
        ),
    )
    assert [f.rule for f in found.findings] == ["checks.gradients_are_cleared"]
    assert names(found.findings[0]) == [
        "step_contains_foreach_zero",
        "gradients_do_not_explode",
        "gradients_do_not_explode",
        "gradients_are_finite",
    ]


def test_a_loss_of_probabilities_does_not_follow_from_gradients_that_are_not_cleared() -> None:
    text = (
        "edition 2026\n\nmodule checks\n\nuse std.torch\nuse std.losses\n\n"
        "invariant cleared { before backward expect norm(parameters.grad) == 0\n"
        "  or count(calls(optimizer.zero_grad)) > 0 }\n"
        "invariant logits { for c in calls(class_loss)\n"
        '  expect c.made_by != "softmax" and not (min(c.input) >= 0) }\n'
        "invariant falls { after backward expect loss < 2 }\n"
    )
    loaded = load_text(text).program
    assert loaded is not None
    of = {rule.name: rule for rule in loaded.rules}
    found = report(
        loaded,
        verdicts(
            decided(of["cleared"], range(2, 40)),
            decided(of["logits"], range(2, 40), subject="#0"),
            decided(of["falls"], range(2, 40)),
        ),
    )
    assert {f.rule for f in found.findings} == {"checks.cleared", "checks.logits"}
    assert [name for f in found.findings for name in names(f)] == ["falls"]


def test_two_bugs_with_nothing_in_common_are_two() -> None:
    found = report(
        program(CLEARED, DROPOUT),
        verdicts(
            decided(CLEARED, range(2, 40)),
            decided(DROPOUT, range(20, 25), subject="#0"),
        ),
    )
    assert [f.rule for f in found.findings] == [
        "checks.gradients_are_cleared",
        "checks.dropout_is_off_in_evaluation",
    ]


def hygiene() -> tuple[rules.Program, dict[str, rules.Rule]]:
    """The rules of `std.hygiene`, also by name."""
    loaded = load_text("edition 2026\n\nmodule checks\n\nuse std.hygiene\n").program
    assert loaded is not None
    return loaded, {rule.name: rule for rule in loaded.rules}


def test_a_layer_that_is_not_trained_does_not_hide_gradients_that_are_not_cleared() -> None:
    """Rules of the packs, as they fire on a loop with both faults and on one with the second fault."""
    loaded, of = hygiene()
    held = decided(of["optimizers_hold_all_trainable_parameters"], [1], subject="2.weight")
    cleared = decided(of["gradients_are_cleared"], range(2, 40))
    once = decided(of["updates_use_each_gradient_once"], range(2, 40), subject="#0")
    both = report(loaded, verdicts(held, cleared, once)).findings
    assert [(f.rule.rpartition(".")[2], names(f)) for f in both] == [
        ("optimizers_hold_all_trainable_parameters", []),
        ("gradients_are_cleared", ["updates_use_each_gradient_once"]),
    ]
    [one] = report(loaded, verdicts(cleared, once)).findings
    assert names(one) == ["updates_use_each_gradient_once"]


def test_gradients_that_are_not_cleared_are_no_reason_for_a_layer_without_any() -> None:
    loaded, of = hygiene()
    cleared = decided(of["gradients_are_cleared"], range(2, 40))
    layer = ("optimizer.0", "0.weight")
    lacking = decided(of["trainable_parameters_get_gradients"], range(21, 40), subject=layer)
    found = report(loaded, verdicts(cleared, lacking)).findings
    assert [(f.rule.rpartition(".")[2], names(f)) for f in found] == [
        ("gradients_are_cleared", []),
        ("trainable_parameters_get_gradients", []),
    ]


def test_a_layer_that_is_not_trained_makes_no_loop_clip_after_its_update() -> None:
    loaded, of = hygiene()
    held = decided(of["optimizers_hold_all_trainable_parameters"], [1], subject="2.weight")
    clipped = decided(of["clipping_comes_before_the_update"], range(1, 40))
    stays = decided(of["optimizer_updates_parameters"], range(2, 40), subject="2.weight")
    found = report(loaded, verdicts(held, clipped, stays)).findings
    assert {f.rule.rpartition(".")[2]: names(f) for f in found} == {
        "optimizers_hold_all_trainable_parameters": ["optimizer_updates_parameters"],
        "clipping_comes_before_the_update": [],
    }


def test_different_subjects_that_stop_at_different_steps_are_two() -> None:
    found = report(
        program(MOVES),
        verdicts(
            decided(MOVES, range(3, 20), subject="fc.weight"),
            decided(MOVES, range(9, 20), subject="conv.weight"),
        ),
    )
    assert [(f.subject, f.step) for f in found.findings] == [("fc.weight", 3), ("conv.weight", 9)]


def test_subjects_that_stop_together_are_one() -> None:
    found = report(
        program(MOVES),
        verdicts(
            decided(MOVES, range(3, 20), subject="fc.weight"),
            decided(MOVES, range(3, 20), subject="fc.bias"),
        ),
    )
    assert [f.subjects for f in found.findings] == [("fc.weight", "fc.bias")]
    assert found.findings[0].violated == 34


def test_what_ranks_do_alike_does_not_make_them_differ() -> None:
    found = report(
        program(CLEARED, ALIKE),
        verdicts(
            decided(CLEARED, range(2, 9), ranks=(0,)),
            decided(CLEARED, range(2, 9), ranks=(1,)),
            decided(ALIKE, range(2, 9), ranks=(0, 1), subject="fc.weight"),
        ),
    )
    assert len(found.findings) == 2


def test_a_stale_optimizer_is_the_cause_of_a_parameter_that_stays() -> None:
    found = report(
        program(MOVES, HELD),
        verdicts(
            decided(MOVES, range(1, 9), subject="head.weight"),
            decided(HELD, range(1, 9), subject="head.weight"),
        ),
    )
    assert [f.rule for f in found.findings] == ["checks.optimizers_hold_all_parameters"]
    assert names(found.findings[0]) == ["optimizer_updates_parameters"]


def test_a_nan_spreads_from_where_it_began() -> None:
    found = report(
        program(WEIGHTS_FINITE, FINITE),
        verdicts(
            decided(FINITE, range(5, 9), subject="fc.bias"),
            decided(WEIGHTS_FINITE, range(5, 9), subject="fc.bias"),
            decided(FINITE, range(7, 9), subject="conv.weight"),
            decided(WEIGHTS_FINITE, range(7, 9), subject="conv.weight"),
        ),
    )
    assert [(f.rule, f.subject) for f in found.findings] == [
        ("checks.gradients_are_finite", "fc.bias")
    ]
    assert len(found.findings[0].consequences) == 3


def test_an_accepted_rule_is_shown_before_a_draft_of_the_same_step() -> None:
    draft = rule("drafted", scenes.contains("optimizer.zero_grad"), draft=True)
    found = report(program(draft, CLEARED), verdicts(decided(draft, [2, 3]), decided(CLEARED, [2])))
    assert [f.rule for f in found.findings] == ["checks.gradients_are_cleared"]
    assert names(found.findings[0]) == ["drafted"]


def test_what_was_seen_while_the_rule_held_is_another_fault() -> None:
    draft = rule("drafted", scenes.contains("optimizer.zero_grad"), draft=True)
    found = report(
        program(draft, CLEARED),
        verdicts(
            decided(draft, [1]), decided(CLEARED, [1], verdict="holds"), decided(CLEARED, [2])
        ),
    )
    assert [f.rule for f in found.findings] == ["checks.gradients_are_cleared", "checks.drafted"]


def test_a_draft_that_sees_a_fault_before_the_rule_is_decided_is_no_headline() -> None:
    draft = rule("drafted", scenes.contains("optimizer.zero_grad"), draft=True)
    late = rule("dropped", scenes.call_field("dropout", "training"), over="calls:dropout")
    found = report(
        program(draft, CLEARED, late),
        verdicts(decided(draft, [1]), decided(CLEARED, [2]), decided(late, [2], subject="#0")),
    )
    assert {f.rule: names(f) for f in found.findings} == {
        "checks.dropped": [],
        "checks.gradients_are_cleared": ["drafted"],
    }


def test_a_running_job_says_since_when_a_rule_has_not_held() -> None:
    draft = rule("drafted", scenes.contains("optimizer.zero_grad"), draft=True)
    for held, headlines in ((0, 1), (3, 1), (4, 2)):
        late = [replace(one, held=held) for one in decided(CLEARED, [10])]
        found = report(program(draft, CLEARED), verdicts(decided(draft, [4]), late), ())
        assert len(found.findings) == headlines


def test_data_flow_alone_makes_nothing_a_fault_of_before() -> None:
    draft = rule("drafted", scenes.below(), over="parameter", window=BEFORE_UPDATE, draft=True)
    found = report(
        program(draft, CLEARED),
        verdicts(decided(draft, [1], subject="fc.weight"), decided(CLEARED, [2])),
    )
    assert len(found.findings) == 2


def test_a_rule_is_folded_under_none_that_is_less_severe() -> None:
    stops = rule(
        "gradients_stay_small",
        scenes.below(),
        over="parameter",
        window=BEFORE_UPDATE,
        actions=("warn", "stop"),
    )
    found = report(
        program(CLEARED, stops, SMALL),
        verdicts(
            decided(CLEARED, range(2, 40)),
            decided(stops, range(9, 40), subject="fc.weight"),
            decided(SMALL, range(9, 40), subject="fc.weight"),
        ),
    )
    assert [(f.rule, f.severity) for f in found.findings] == [
        ("checks.gradients_are_cleared", "warning"),
        ("checks.gradients_stay_small", "error"),
    ]
    draft = rule(
        "drafted", scenes.own_field("optimizer", "parameters"), over="parameter", draft=True
    )
    found = report(
        program(draft, MOVES),
        verdicts(
            decided(draft, [1], subject="fc.weight"),
            decided(MOVES, [1, 2, 3], subject="fc.weight", verdict="holds"),
            decided(MOVES, range(4, 9), subject="fc.weight"),
        ),
    )
    assert [f.rule for f in found.findings] == [
        "checks.optimizer_updates_parameters",
        "checks.drafted",
    ]


def test_a_parameter_without_a_gradient_does_not_make_batches_repeat() -> None:
    idle = rule("parameters_get_gradients", scenes.own_field("parameter", "grad"), over="parameter")
    repeat = rule(
        "batches_differ",
        scenes.below("digest", "tensors", "batch"),
        over="batch",
        window=BEFORE_UPDATE,
    )
    found = report(
        program(idle, repeat),
        verdicts(
            decided(idle, range(1, 9), subject="half.weight"),
            decided(repeat, range(4, 9), subject="#0"),
        ),
    )
    assert [f.consequences for f in found.findings] == [(), ()]


def test_what_a_call_of_the_project_does_flows_nowhere_that_is_known() -> None:
    own = rule("indexes_are_built", scenes.contains("build_index"))
    found = report(
        program(own, SMALL),
        verdicts(decided(own, [1]), decided(SMALL, range(4, 9), subject="fc.weight")),
    )
    assert len(found.findings) == 2


def test_a_wrapper_that_misses_a_layer_is_why_ranks_differ() -> None:
    wrapped = rule(
        "wrappers_reduce_all", scenes.own_field("wrapper", "parameters"), over="parameter"
    )
    found = report(
        program(ALIKE, wrapped),
        verdicts(
            decided(ALIKE, range(1, 9), ranks=(0, 1), subject="prior"),
            decided(wrapped, range(1, 9), ranks=(0,), subject="prior"),
            decided(wrapped, range(1, 9), ranks=(1,), subject="prior"),
        ),
    )
    assert [f.rule for f in found.findings] == ["checks.wrappers_reduce_all"]
    assert names(found.findings[0]) == ["replicas_agree"]


def test_dropout_in_evaluation_is_why_it_draws_random_numbers() -> None:
    random = rule(
        "evaluation_is_not_random",
        scenes.own_field("generator", "state"),
        over="generator",
        window=rules.Window("during", event=rules.EventPattern(("forward",))),
    )
    found = report(
        program(random, DROPOUT),
        verdicts(
            decided(random, [20, 40], subject="default"), decided(DROPOUT, [20, 40], subject="#1")
        ),
    )
    assert [f.rule for f in found.findings] == ["checks.dropout_is_off_in_evaluation"]


def test_a_consequence_goes_to_the_cause_that_it_is_closest_to() -> None:
    found = report(
        program(CLEARED, HELD, MOVES),
        verdicts(
            decided(CLEARED, range(2, 9)),
            decided(HELD, range(1, 9), subject="fc.weight"),
            decided(MOVES, range(2, 9), subject="fc.weight"),
        ),
    )
    assert [f.rule for f in found.findings] == [
        "checks.optimizers_hold_all_parameters",
        "checks.gradients_are_cleared",
    ]
    assert names(found.findings[0]) == ["optimizer_updates_parameters"]


def headlines(*of: tuple[str, int, str | tuple[str, ...]]) -> list[str]:
    """The headlines of shipped rules that are violated from a step on by a subject, as they are printed."""
    shipped = load([Path("specs/advice"), Path("specs/architecture"), Path("specs/health")]).program
    assert shipped is not None
    by_name = {each.name: each for each in shipped.rules}
    found = report(
        rules.Program(tuple(by_name[name] for name, _, _ in of), shipped.vocabulary),
        verdicts(
            *(decided(by_name[name], range(step, 40), subject=at) for name, step, at in of),
        ),
    )
    return [finding.rule.rpartition(".")[2] for finding in found.findings]


@pytest.mark.parametrize(
    "later", ["accumulated_gradients_are_kept", "microbatches_differ", "loss_does_not_spike"]
)
def test_what_the_weight_decay_is_makes_nothing_else_go_wrong(later: str) -> None:
    decay = "weight_decay_spares_norms_and_biases"
    assert headlines((decay, 1, ("adam", "fc.bias")), (later, 2, ())) == [later, decay]


def test_settings_of_a_tensor_are_no_cause_of_what_else_befalls_it() -> None:
    decay, grown = "weight_decay_spares_norms_and_biases", "clipping_never_grows_a_gradient"
    assert headlines((decay, 1, ("adam", "fc.bias")), (grown, 2, "fc.bias")) == [grown, decay]


def test_settings_are_folded_under_settings() -> None:
    odd, aligned = "kernels_are_odd", "linear_sizes_are_aligned"
    assert headlines((odd, 1, "net"), (aligned, 1, "net.fc")) == [odd]


def test_the_size_of_a_kernel_does_not_leave_an_update_out() -> None:
    odd, kept = "kernels_are_odd", "accumulated_gradients_are_kept"
    assert headlines((odd, 1, "conv"), (kept, 2, ())) == [kept, odd]


def test_numbers_that_grow_do_not_make_losses_alike() -> None:
    big, alike = "clipping_never_grows_a_gradient", "microbatches_differ"
    assert headlines((big, 1, "fc.weight"), (alike, 2, ())) == [big, alike]


@pytest.mark.parametrize(
    ("reason", "headline"),
    [("rank 0 lacks it", "collectives_match"), ("", "ranks_reduce_in_one_order")],
)
def test_of_a_call_that_a_rank_lacks_nothing_is_read(reason: str, headline: str) -> None:
    pack = load([Path("specs", "communication")]).program
    assert pack is not None
    of = {each.name: each for each in pack.rules}
    names_of_calls = (
        "collectives_match",
        "ranks_reduce_in_one_order",
        "ranks_reduce_by_one_operation",
    )
    symptoms = [
        decided(of[name], [4], subject="#24", ranks=(0, 1), reason=reason)
        for name in names_of_calls
    ]
    found = report(pack, verdicts(*symptoms))
    assert [each.rule for each in found.findings] == [of[headline].qualified]
    assert len(found.findings[0].consequences) == 2

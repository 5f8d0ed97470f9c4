"""Every silent error of the zoo is caught by the rule named, at the step; its clean sibling is not.

Each case runs its script unedited, as a user would, under `tspec run`.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.families import family
from tests.jobs import Outcome, run

HERE = Path(__file__).resolve().parent
ESSENTIALS = "specs/essentials"
FAST = {"b01", "b04", "b20"}
SAMPLE = {
    "b03",
    "b14",
    "n3",
    "h1",
    "r1",
    "s1",
}
"""Errors of one process and of several, in training, messages, checkpoints, wrappers, losses and at initialisation."""
CLEAN_SAMPLE = {"h3"}


@dataclass(frozen=True, slots=True)
class Case:
    """A script, its error, the rule that sees it, and the step at which it does."""

    script: str
    bug: str
    rule: str
    step: int | None
    specs: tuple[str, ...] = (ESSENTIALS,)

    @property
    def number(self) -> str:
        return self.script.split("_")[0]

    @property
    def path(self) -> Path:
        return HERE / f"{self.script}.py"

    @property
    def own_spec(self) -> tuple[str, ...]:
        """What ties the script's own functions to the events that shipped rules watch."""
        spec = self.path.with_suffix(".tspec")
        return (str(spec),) if spec.exists() else ()


MESSAGES = ("specs/communication",)
OWN = ()
TRAINCHECK = (
    Case("b01_only_norms_train", "only-norms", "optimizers_have_something_to_train", 1),
    Case("b02_pipeline_messages", "copy", "layers_read_what_was_sent", 1, MESSAGES),
    Case("b02_pipeline_messages", "early", "layers_read_what_was_sent", 1, MESSAGES),
    Case("b02_pipeline_messages", "driver", "messages_arrive_as_sent", 1, MESSAGES),
    Case(
        "b03_clipping_on_one_rank",
        "clip-on-rank-0",
        "updates_of_replicas_agree",
        1,
    ),
    Case("b04_missing_zero_grad", "no-zero-grad", "gradients_are_cleared", 2),
    Case("b05_generates_too_much", "limit-before-cut", "generation_stops_at_its_limit", 10, OWN),
    Case("b06_workers_repeat", "same-seed", "batches_do_not_repeat", 2),
    Case("b07_transform_without_autocast", "transform", "autocast_reaches_every_matmul", 1),
    Case("b08_stale_compilation", "missing-guard", "trainable_parameters_get_gradients", 21),
    Case("b09_hooks_lost_by_to", "overwrite", "wrappers_reduce_all_trainable_parameters", 1),
    Case("b10_around_the_wrapper", "inner", "training_goes_through_the_wrapper", 1),
    Case("b11_only_the_first_sample", "first-only", "processors_keep_every_sample", 0, OWN),
    Case(
        "b12_attention_dropout_in_evaluation",
        "always-drop",
        "attention_dropout_is_off_in_evaluation",
        30,
    ),
    Case(
        "b13_initialised_again",
        "unmarked",
        "weights_are_not_initialised_again",
        None,
        ("specs/advice",),
    ),
    Case(
        "b14_checkpoint_without_lstm",
        "lost-weights",
        "checkpoints_hold_the_whole_model",
        20,
        ("specs/checkpoints",),
    ),
    Case("b15_stops_too_early", "divided-twice", "training_has_all_its_steps", None, OWN),
    Case("b16_conflicting_all_to_all", "own-counts", "dispatched_counts_fit", 1, OWN),
    Case(
        "b19_spectral_norm_untrained",
        "evaluate-first",
        "spectral_norm_is_trained_before_evaluated",
        None,
    ),
    Case("b20_stages_not_frozen", "not-frozen", "frozen_stages_are_frozen", 1),
)
NEW = (
    Case(
        "n1_optimizer_before_wrapping",
        "optimizer-first",
        "optimizers_hold_parameters_of_a_model",
        None,
    ),
    Case(
        "n2_optimizer_of_another_model",
        "copied-model",
        "optimizers_hold_parameters_of_a_model",
        1,
    ),
    Case(
        "n3_frozen_not_saved",
        "only-trained",
        "checkpoints_hold_the_whole_model",
        20,
        ("specs/checkpoints",),
    ),
    Case("n4_stages_reduce_differently", "order", "ranks_reduce_in_one_order", 1, MESSAGES),
    Case("n5_set_up_overwrites_id", "overwrites", "set_up_leaves_attributes_alone", 0, OWN),
    Case("n6_capacity_by_rank", "own-capacity", "capacities_agree", 2, OWN),
)
HEALTH = (
    Case("h1_nan_on_one_rank", "nan", "loss_is_finite", 15),
    Case("h1_nan_on_one_rank", "nan", "ranks_agree_on_finiteness", 15),
    Case("h2_nan_gradient_finite_loss", "square-root", "gradients_are_finite", 12),
    Case("h3_spike", "scale", "loss_does_not_spike", 130),
    Case("h3_spike", "limit", "clipping_leaves_the_gradients", 50, ("specs/advice",)),
    Case("h4_explosion", "restart", "loss_does_not_explode", None),
    Case("h5_underflow", "no-scaler", "gradients_do_not_underflow", 1),
    Case("h6_infinite_microbatch", "rounded", "loss_is_finite", 20),
    Case("h7_ten_nans", "no-epsilon", "loss_is_finite", 30),
)
LOSSES = (
    Case("s1_divergences", "logarithms", "divergences_get_probabilities_as_targets", 1),
    Case("s1_divergences", "swapped", "divergences_train_their_input", 1),
    Case("s1_divergences", "over-the-batch", "divergences_compare_distributions_over_classes", 2),
    Case("s3_next_word", "shifted-twice", "targets_are_the_next_tokens", 2),
    Case("s3_next_word", "unshifted", "targets_are_the_next_tokens", 2),
    Case("s3_next_word", "over-queries", "attention_weighs_keys", 1),
    Case("s3_next_word", "bare-temperature", "loose_parameters_are_trained", 3),
    Case("s5_reversal", "no-mask", "next_tokens_are_hidden", 2),
    Case("s5_reversal", "unshifted", "targets_are_the_next_tokens", 2),
    Case("s12_walk", "advantage", "policy_gradients_use_constants", 1),
    Case("s12_walk", "old", "policy_gradients_use_constants", 1),
    Case("s26_grid", "moving-target", "values_of_next_states_are_constants", 2),
)
AVERAGES = (
    Case("s2_average_that_stays", "counts-steps", "averages_follow_their_weights", 80),
    Case("s23_shadow", "never-follows", "evaluated_copies_follow_what_is_trained", 60),
    Case("s4_average_of_weights", "before-update", "averages_are_updated_after_the_weights", 5),
    Case("s4_average_of_weights", "sum", "averages_lie_between", 10),
    Case("s4_average_of_weights", "swapped", "averages_keep_more_than_they_take", 40),
    Case("s24_last_average", "swapped", "averages_keep_more_than_they_take", 40),
    Case(
        "s4_average_of_weights",
        "sum-by-hand",
        "averages_stay_near_their_weights",
        20,
        ("specs/advice",),
    ),
)
TERMS = (
    Case("s22_detector", "detached", "terms_of_the_loss_are_trained", 4, ("specs/advice",)),
    Case("s22_detector", "minus", "terms_of_the_loss_are_added", 3, ("specs/advice",)),
)
REPLICAS = (
    Case("r1_dry_run_before_wrapping", "own-state", "optimizer_state_starts_alike", 4),
    Case("r1_dry_run_before_wrapping", "own-rate", "options_of_replicas_agree", 4),
)
DATA = (
    Case("s21_ranking", "weights-of-items", "samplers_have_a_weight_for_each_sample", 1),
    Case("s6_denoiser", "no-time", "layers_are_given_data_of_each_sample", 10),
    Case("s6_denoiser", "one-time", "layers_are_given_data_of_each_sample", 10),
    Case("s7_twin_critics", "one-critic", "optimizers_hold_all_trainable_parameters", 1),
    Case("s24_orders", "one-place", "places_have_numbers_of_their_own", 5),
)
SCHEDULES = (
    Case("s15_series", "always-drops", "functional_dropout_knows_the_mode", 20),
    Case("s15_series", "each-epoch", "schedules_count_what_they_were_built_for", 80),
    Case("s15_series", "epochs", "schedules_for_epochs_are_stepped_with_epochs", 80),
    Case("s15_series", "told-epoch", "plateaus_are_of_metrics", 60),
    Case("s20_stages", "no-schedule", "schedules_are_stepped", 140),
    Case("s24_orders", "rate", "factors_of_schedules_are_no_rates", 20),
)
UPDATES = (
    Case("s8_two_towers", "one-tower", "updates_use_each_gradient_once", 2),
    Case("s8_two_towers", "temperature", "updates_use_each_gradient_once", 2),
    Case("s9_adversaries", "discriminator", "updates_use_each_gradient_once", 2),
    Case("s8_two_towers", "no-update", "cleared_gradients_are_for_an_update", 1),
    Case("s9_adversaries", "generator", "updates_use_each_gradient_once", 2),
    Case(
        "s9_adversaries", "discriminator-update", "optimizers_use_the_gradients_that_they_clear", 52
    ),
    Case("s16_names", "cleared-each-batch", "updates_use_all_their_batches", 4),
    Case("s9_adversaries", "generator-update", "optimizers_use_the_gradients_that_they_clear", 52),
)
MODELS = (
    Case("s20_stages", "misspelt", "requires_grad_is_spelt_right", 100),
    Case("s20_stages", "attribute", "requires_grad_is_set_on_parameters", 100),
    Case("s10_patches", "reshape", "views_do_not_stand_for_transposes", 2),
    Case("s10_patches", "plain-places", "loose_parameters_are_trained", 3),
    Case("s19_tissue", "no-eval", "held_out_tensors_are_evaluated_in_evaluation_mode", 20),
    Case("s23_shadow", "raw-evaluation", "evaluation_inputs_have_the_scale_of_training", 40),
    Case("s11_segmenter", "view", "views_do_not_stand_for_transposes", 2),
    Case("s11_segmenter", "no-eval", "batch_norms_leave_held_out_data_alone", 30),
    Case("s25_critic", "no-graph", "penalties_of_derivatives_are_trained", 8),
    Case("s24_orders", "no-momentum", "batch_norms_learn_their_statistics", 25),
    Case("s14_translator", "layer-mask", "attention_sees_tokens", 2),
    Case("s14_translator", "no-mask", "attention_does_not_see_padding", 3),
    Case("s14_translator", "score-mask", "attention_sees_tokens", 2),
    Case("s14_translator", "zero-mask", "masks_hide_from_the_softmax", 2),
    Case("s17_two_views", "over-the-batch", "similarities_are_of_unit_vectors", 2),
    Case("s18_experts", "over-the-batch", "choices_are_among_what_is_weighed", 2),
    Case("s13_speech", "scores", "alignments_get_log_probabilities", 1),
    Case("s13_speech", "over-time", "alignments_get_log_probabilities", 1),
    Case("s13_speech", "padded-lengths", "alignments_have_no_blank_labels", 1),
    Case("s13_speech", "stretched", "squared_errors_are_of_pairs", 2),
)
CASES = (
    *TRAINCHECK,
    *NEW,
    *HEALTH,
    *LOSSES,
    *AVERAGES,
    *DATA,
    *UPDATES,
    *SCHEDULES,
    *MODELS,
    *REPLICAS,
    *TERMS,
)


def found_in(case: Case, report: Path, *options: str) -> Outcome:
    """Run the script with its rules."""
    return run([*case.specs, *case.own_spec], case.path, report, *options)


FIRST = tuple({case.number: case for case in reversed(CASES)}.values())
"""One error of each script."""


def params(cases: tuple[Case, ...], sample: set[str]) -> list:
    def name(case: Case) -> str:
        return f"{case.number}-{case.bug}"

    chosen = {name(case) for case in FIRST if case.number in sample}
    fast = {name(case) for case in cases if case.number in FAST}
    return family(cases, chosen, fast, name)


@pytest.mark.parametrize("case", params(CASES, SAMPLE))
def test_the_error_is_caught(case: Case, tmp_path: Path) -> None:
    found = found_in(case, tmp_path / "report.json", "--bug", case.bug)
    steps = found.steps(case.rule)
    assert steps, f"{case.rule} is silent; found: {found.messages}"
    if case.step is not None:
        assert min(steps) == case.step


@pytest.mark.slow
@pytest.mark.parametrize("case", params(FIRST, CLEAN_SAMPLE))
def test_its_clean_sibling_is_not_accused(case: Case, tmp_path: Path) -> None:
    assert found_in(case, tmp_path / "report.json").messages == []


def test_every_script_is_a_case_and_is_listed() -> None:
    scripts = {path.stem for path in HERE.glob("[bnhrs]*.py")}
    listed = (HERE / "README.md").read_text()
    assert scripts == {case.script for case in CASES}
    assert [case for case in CASES if f"| {case.script} | {case.bug} |" not in listed] == []

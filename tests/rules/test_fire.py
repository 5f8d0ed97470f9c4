"""Every rule of the essentials on one rank, and some of other packs, fires on its fault, online and offline, and is silent without it."""

from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.families import family
from tests.rules import loops, loops_of_advice, loops_of_samples


def variants(module):
    """The loops of a module by the name of the rule that is to see their fault."""
    found = {}
    for cls in vars(module).values():
        if isinstance(cls, type) and issubclass(cls, loops.Loop) and cls not in module.BASES:
            name = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("_")
            found[name] = cls
    return found


VARIANTS = variants(loops) | variants(loops_of_advice) | variants(loops_of_samples)
ONLY_LIVE = {
    "token_ids_are_in_the_vocabulary", "averages_lie_between",
    "averages_keep_more_than_they_take", "averages_in_their_model", "layers_are_given_data_of_each_sample",
    "inputs_of_layers_vary_between_samples", "rows_of_tables_vary_between_samples",
    "outputs_vary_between_samples", "no_filter_is_dead", "updates_are_not_lost_to_rounding",
    "convolutions_are_channels_last", "weight_decay_spares_embeddings", "single_ids_are_no_padding",
    "outputs_of_the_mean_of_a_batch", "second_model_begins_with_one_value",
}  # fmt: skip
"""Rules that read what a recording leaves out: the values of every token id, the inputs of every layer,
differences of tensors, features of rows and columns, memory formats, and extremes of parameters after
the first steps."""
ELSEWHERE = {
    # what needs ranks: test_ranks.py
    "ranks_agree_on_finiteness", "ranks_draw_different_batches", "ranks_make_different_batches",
    "ranks_read_different_samples", "ranks_read_different_labels", "replicas_make_the_same_updates",
    "tensor_parallel_ranks_read_the_same_batch", "tensor_parallel_ranks_make_the_same_batch",
    "ranks_see_equally_many_batches", "loss_scale_agrees", "replicas_agree",
    "parameters_that_agreed_keep_agreeing", "replicas_start_alike", "gradients_agree_after_all_reduce",
    "equal_inputs_give_equal_gradients",
    "ranks_resume_at_one_step", "updates_use_gradients_of_all_ranks",
    "learning_rates_agree", "gradient_norms_agree", "wrappers_reduce_all_trainable_parameters",
    "training_goes_through_the_wrapper", "updates_of_replicas_agree", "optimizer_state_starts_alike",
    "options_of_replicas_agree", "ranks_without_updates_keep_up",
    "last_passes_reduce_their_gradients", "evaluations_of_parts_are_put_together",
    "plain_parameters_beside_sharded_ones_stay_alike", "gradients_that_other_ranks_use_are_cleared",
    # what needs ranks that average by hand: test_collectives.py
    "ranks_learn_from_one_another", "ranks_end_with_one_model",
    "parameters_with_one_gradient_start_alike", "parameters_that_start_alike_stay_alike",
    "constant_parameters_of_replicas_stay_alike", "labels_of_gathered_candidates_begin_at_their_rank",
    "ranks_that_reduce_gradients_have_different_inputs",
    "summed_gradients_are_averaged", "backward_passes_add_up_parts", "stages_are_scaled_alike",
    "receives_leave_inputs_until_their_backward", "norms_of_reduced_gradients_agree",
    # what needs ranks that average by hand, or layers that are cut: native/faults.py
    "averaged_parameters_start_alike", "ranks_that_share_classes_have_the_same_targets",
    "parts_are_scaled_alike", "shards_are_scaled_alike", "shards_have_gradients_of_their_own",
    # what needs a pipeline with a backward pass of its own: megatron/test_losses.py
    "loss_without_backward_is_finite",
    # what needs two hundred steps: test_schedules.py
    "optimizers_cleared_together_make_updates",
    # what needs a run that is resumed: test_resumed.py
    "resumed_counters_go_on", "ranks_save_to_files_of_their_own", "ranks_go_on_from_files_of_their_own",
    "parameters_with_loaded_moments_are_loaded",
    # what needs an engine that sets up: the zoo
    "set_up_leaves_attributes_alone",
    # what needs Accelerate, the Trainer or Lightning: tests/frameworks
    "prepared_optimizers_accumulate", "states_are_loaded_after_prepare",
    "accelerators_divide_accumulated_losses", "schedules_ahead_of_updates_last_as_long_as_the_run",
    "trainers_average_over_all_micro_batches", "metrics_get_better_as_their_mode_says",
    "checkpoints_are_compared_by_what_gets_better",
}  # fmt: skip


@cache
def program(pack):
    from tspec.resolve import load

    return load([Path("specs", pack)]).program


@cache
def compiled(pack):
    from tspec.targets.load import load

    return load(program(pack))


def violated(loop, folder, name=None):
    """The rules of its pack that the loop violates: as compiled hooks saw it, and as its recording shows.

    `name`: the rule of which alone the recording is asked; by default it is asked of all.
    """
    from tspec.check.interpret import interpret
    from tspec.record.destination import Destination
    from tspec.record.start import recorder_of
    from tspec.record.watch import watch_spec
    from tspec.runtime.actions import JobStopped
    from tspec.runtime.checker import Checker
    from tspec.runtime.live import LiveJob
    from tspec.trace.read import read_trace

    spec, hooks = program(loop.pack), compiled(loop.pack)
    watched = watch_spec(spec.vocabulary)
    recorder = recorder_of(Destination(folder / "trace"), watched, "tests/rules")
    checker = Checker(hooks)
    machine = patch("torch.cuda.is_available", partial(bool, loop.accelerator))
    with machine, LiveJob(watched, [recorder, checker]), suppress(JobStopped):
        loop.run()
    recorder.close()
    assert checker.faults == []
    online = {rule.declared.name for rule in checker.rules if rule.counts["violated"]}
    asked = [rule for rule in spec.rules if name in (None, rule.qualified)]
    verdicts = interpret(asked, read_trace(folder / "trace"))
    offline = {d.instance.rule for d in verdicts.decided if d.verdict == "violated"}
    return online, offline


def test_every_rule_has_a_fault():
    names = {rule.name for rule in program("essentials").rules}
    seen = {v.rule or n for n, v in VARIANTS.items() if v.pack == "essentials"}
    assert names == seen | ELSEWHERE
    assert len(names) >= 40


LONG = sorted(name for name in VARIANTS if VARIANTS[name].steps >= 30)
SHORT = {name for name in VARIANTS if VARIANTS[name].steps < 16}
MIDDLE = VARIANTS.keys() - {*LONG} - SHORT


@pytest.mark.parametrize("name", family(sorted(VARIANTS), {*LONG[::4], *MIDDLE}, SHORT))
def test_fires(name, tmp_path):
    loop = VARIANTS[name](True)
    rules = program(loop.pack).rules
    qualified = next(rule.qualified for rule in rules if rule.name == (loop.rule or name))
    online, offline = violated(loop, tmp_path, qualified)
    assert qualified in online
    assert name in ONLY_LIVE or qualified in offline


@pytest.mark.parametrize("name", family(sorted(VARIANTS), sorted(VARIANTS)[::12]))
def test_is_silent(name, tmp_path):
    assert violated(VARIANTS[name](False), tmp_path) == (set(), set())

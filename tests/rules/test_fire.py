"""Every rule of the essentials on one rank, and some of other packs, fires on its fault, online and offline, and is silent without it."""

import importlib.util
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("rules_loops", HERE / "loops.py")
loops = importlib.util.module_from_spec(spec)
sys.modules["rules_loops"] = loops
spec.loader.exec_module(loops)

VARIANTS = loops.variants()
ONLY_LIVE = {
    "token_ids_are_in_the_vocabulary", "averages_lie_between",
    "inputs_of_layers_vary_between_samples", "rows_of_tables_vary_between_samples",
}  # fmt: skip
"""Rules that read what a recording leaves out: the values of every token id, the inputs of every layer,
differences of tensors."""
ELSEWHERE = {
    # what needs ranks: test_ranks.py
    "ranks_agree_on_finiteness", "ranks_draw_different_batches", "tensor_parallel_ranks_read_the_same_batch",
    "ranks_see_equally_many_batches", "loss_scale_agrees", "replicas_agree",
    "parameters_that_agreed_keep_agreeing", "replicas_start_alike", "gradients_agree_after_all_reduce",
    "learning_rates_agree", "gradient_norms_agree", "wrappers_reduce_all_trainable_parameters",
    "training_goes_through_the_wrapper", "updates_of_replicas_agree", "optimizer_state_starts_alike",
    "options_of_replicas_agree",
    # what needs an engine that sets up: the zoo
    "set_up_leaves_attributes_alone",
}  # fmt: skip


@cache
def program(pack):
    from tspec.resolve import load

    return load([Path("specs", pack)]).program


@cache
def compiled(pack):
    from tspec.targets.load import load

    return load(program(pack))


def violated(loop, folder):
    """The rules of its pack that the loop violates: as compiled hooks saw it, and as its recording shows."""
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
    with LiveJob(watched, [recorder, checker]), suppress(JobStopped):
        loop.run()
    recorder.close()
    assert checker.faults == []
    online = {rule.declared.name for rule in checker.rules if rule.counts["violated"]}
    verdicts = interpret(spec.rules, read_trace(folder / "trace"))
    offline = {d.instance.rule for d in verdicts.decided if d.verdict == "violated"}
    return online, offline


def test_every_rule_has_a_fault():
    names = {rule.name for rule in program("essentials").rules}
    seen = {v.rule or n for n, v in VARIANTS.items() if v.pack == "essentials"}
    assert names == seen | ELSEWHERE
    assert len(names) >= 40


NAMES = [
    pytest.param(name, marks=pytest.mark.slow if VARIANTS[name].steps >= 30 else ())
    for name in sorted(VARIANTS)
]


@pytest.mark.parametrize("name", NAMES)
def test_fires(name, tmp_path):
    loop = VARIANTS[name](True)
    online, offline = violated(loop, tmp_path)
    rules = program(loop.pack).rules
    qualified = next(rule.qualified for rule in rules if rule.name == (loop.rule or name))
    assert qualified in online
    assert name in ONLY_LIVE or qualified in offline


@pytest.mark.parametrize("name", NAMES)
def test_is_silent(name, tmp_path):
    assert violated(VARIANTS[name](False), tmp_path) == (set(), set())

"""What shipped rules are about, on which folding stands."""

import pytest

from tspec.report.aspects import aspects, disturbs
from tspec.resolve import load
from tspec.resources import shipped

EXPECTED = {
    "gradients_are_cleared": {"clearing"},
    "steps_have_gradients": {"gradients"},
    "optimizers_hold_parameters_of_a_model": {"ownership"},
    "optimizer_updates_parameters": {"update"},
    "dropout_is_off_in_evaluation": {"mode"},
    "attention_dropout_is_off_in_evaluation": {"mode"},
    "models_train_in_training_mode": {"mode"},
    "evaluation_is_not_random": {"randomness"},
    "gradients_are_finite": {"finiteness"},
    "gradients_do_not_explode": {"values"},
    "replicas_agree": {"agreement", "values"},
    "learning_rates_agree": {"agreement", "schedule"},
    "autocast_reaches_every_matmul": {"forward", "precision"},
}


@pytest.fixture(scope="module")
def about() -> dict[str, frozenset[str]]:
    names = ("hygiene", "health", "replicas", "precision")
    loaded = load([shipped("stdlib") / f"{name}.tspec" for name in names])
    assert loaded.program is not None, loaded.diagnostics
    program = loaded.program
    return {rule.name: aspects(rule, program.vocabulary) for rule in program.rules}


@pytest.mark.parametrize("rule", EXPECTED)
def test_a_rule_is_about_what_its_claim_reads(rule: str, about: dict[str, frozenset[str]]) -> None:
    assert about[rule] == EXPECTED[rule]


def test_a_forgotten_clear_shows_in_numbers_and_not_in_dropout() -> None:
    assert disturbs(frozenset({"clearing"}), frozenset({"values"}))
    assert not disturbs(frozenset({"clearing"}), frozenset({"mode"}))
    assert not disturbs(frozenset({"values"}), frozenset({"clearing"}))

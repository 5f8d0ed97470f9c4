"""What rules are about, on which folding stands."""

import pytest

from tspec.report.aspects import aspects, disturbs
from tspec.resolve import load_text

HEAD = "edition 2026\n\nmodule checks\n\nuse std.torch\n\n"

RULES = {
    "each step expect contains optimizer.zero_grad": {"clearing"},
    "before optimizer.step expect count(parameters.grad) > 0": {"gradients"},
    "for p in parameters before optimizer.step expect p in optimizers.parameters": {"ownership"},
    "for p in parameters during optimizer.step expect changed(p.data)": {"update"},
    "for p in parameters each run expect digest(p.data) != first(digest(p.data))": {"update"},
    "for c in calls(dropout) expect c.training == false": {"mode"},
    "for c in calls(attention) expect c.dropout_p == 0": {"mode"},
    "for m in modules before backward expect m.training": {"mode"},
    "before backward expect 0 in calls(cross_entropy).ignore_index": {"objective"},
    "for g in generators during forward expect not changed(g.state)": {"randomness"},
    "for p in parameters after optimizer.step expect finite(p.data)": {"finiteness"},
    "before optimizer.step expect norm(parameters.grad) <= 100": {"values"},
    "before backward expect norm(parameters.grad) == 0 or count(calls(optimizer.zero_grad)) > 0": {
        "clearing",
        "values",
    },
    "before backward expect count(models.parameters.group) == 0"
    " or count(calls(optimizer.zero_grad)) > 0": {"clearing"},
    "for c in calls(optimizer.step) when present(c.reused) expect c.reused == []": {"clearing"},
    "for p in parameters across world after optimizer.step expect same(p.data)": {
        "agreement",
        "values",
    },
    "each step expect count(calls(scheduler.step)) <= 1": {"schedule"},
    "each step expect count(calls(optimizer.step)) <= 1": {"stepping"},
    "for p in parameters each step expect changed(p.data) only during optimizer.step": {"update"},
    "before optimizer.step expect contains torch.nn.utils.clip_grad_norm_": {"clipping"},
    "for c in calls(fetch) for t in c.tensors expect max(t) <= 50": {"data", "values"},
    'before optimizer.step expect count(states) > 0 and zeros(states(name: "exp_avg").data) < 100%': {
        "checkpoint",
        "values",
    },
    "for s in states after optimizer.step expect finite(s.data)": {"finiteness"},
    "for c in calls(cross_entropy) expect min(c.target) != max(c.target)": {"data", "values"},
    "for c in calls(matmul) expect c.output.dtype == float32": {"forward", "precision"},
}

CLAUSES = ("for ", "across ", "each ", "before ", "during ", "after ", "expect ")


def invariant(clauses: str) -> str:
    """The rule with one clause a line."""
    for word in CLAUSES:
        clauses = clauses.replace(f" {word}", f"\n  {word}")
    return f"invariant checked {{\n  {clauses}\n  else warn\n}}\n"


@pytest.mark.parametrize("clauses", RULES)
def test_a_rule_is_about_what_its_claim_reads(clauses: str) -> None:
    loaded = load_text(HEAD + invariant(clauses))
    assert loaded.program is not None, loaded.diagnostics
    [rule] = loaded.program.rules
    assert aspects(rule, loaded.program.vocabulary) == RULES[clauses]


def test_a_forgotten_clear_shows_in_numbers_and_not_in_dropout() -> None:
    assert disturbs(frozenset({"clearing"}), frozenset({"values"}))
    assert not disturbs(frozenset({"clearing"}), frozenset({"mode"}))
    assert not disturbs(frozenset({"values"}), frozenset({"clearing"}))


def test_targets_change_numbers_and_not_which_parameters_have_gradients() -> None:
    assert disturbs(frozenset({"objective"}), frozenset({"values"}))
    assert disturbs(frozenset({"data"}), frozenset({"objective"}))


def test_a_layer_and_a_softmax_do_not_change_what_is_fed() -> None:
    assert not disturbs(frozenset({"forward"}), frozenset({"data", "values"}))
    assert not disturbs(frozenset({"objective", "values"}), frozenset({"data", "values"}))
    assert not disturbs(frozenset({"objective"}), frozenset({"gradients"}))

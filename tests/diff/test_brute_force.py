"""Small rules over a few values: every situation of a grid is decided by the interpreter, and nothing said contradicts it."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.check.building import Writer, trace
from tests.check.vocabulary import VOCABULARY
from tspec.check.interpret import interpret
from tspec.diff import relate
from tspec.resolve import load_text
from tspec.resolve.program.rules import Program, Rule
from tspec.trace.model import Missing, Tensor

LOSSES = (math.nan, -1.0, 0.0, 1.0, 1.5, 2.0, math.inf, Missing.NOT_RECORDED)
GRADS = (Missing.ABSENT, Tensor(norm=0.5), Tensor(norm=1.0), Tensor(norm=math.nan))
LABELS = ("a", "b", "c")
LITERALS = (
    "loss < 1", "loss <= 1", "loss > 1", "loss >= 1", "loss == 1", "loss != 1", "loss < 2", "loss > 0",
    "loss == loss", "finite(loss)", "abs(loss) < 1.5", "loss + 1 > 2", "2 * loss > 2", "-loss < 0",
    "step > 1", "step >= 2", "step < 3", "step > 1.5", "step == 2", "divisible(step, by: 2)",
    "phase == train", "phase != eval", "enabled", "p.label == \"a\"", "p.label in [\"a\", \"b\"]",
    "p.label != \"c\"", "endswith(p.label, \"a\")", "present(p.grad)", "(present(p.grad) and norm(p.grad) >= 1)",
    "(present(p.grad) implies norm(p.grad) < 1)", "p.order < 1.5", "p.order <= 1", "p.order > loss",
    "p.order in [1, 2]", "p.requires_grad",
)  # fmt: skip


def condition(dice: Random, depth: int) -> str:
    """A random condition."""
    way = dice.randint(0, 4) if depth else 0
    if way < 2:
        return dice.choice(LITERALS)
    left, right = (condition(dice, depth - 1) for _ in range(2))
    if way == 2:
        return f"not ({left})"
    return f"({left} {dice.choice(['and', 'or', 'implies', 'and', 'or'])} {right})"


def body(dice: Random) -> str:
    """A rule about one parameter at each step."""
    subjects = dice.choice(["parameters", "parameters", "parameters(requires_grad: true)"])
    thin = dice.choice(["", "", "", " every 2 steps", " every 3 steps"])
    when = f"when {condition(dice, 2)} " if dice.random() < 0.7 else ""
    return f"for p in {subjects} each step{thin} {when}expect {condition(dice, 2)}"


def grid() -> list[tuple[object, ...]]:
    """Situations: some of all combinations, each with its own step."""
    everything = list(
        product(LOSSES, GRADS, LABELS, (1, 2), (True, False), ("train", "eval"), (True, False))
    )
    Random(0).shuffle(everything)
    return everything


GRID = grid()


def jobs(dice: Random, count: int) -> Writer:
    """One rank on which a situation follows the other, step by step."""
    writer = Writer()
    writer.ambient()
    for index, situation in enumerate(dice.sample(GRID, count), start=1):
        loss, grad, label, order, requires_grad, phase, enabled = situation
        writer.step(index)
        writer.seq += 1
        writer.now(phase=phase)
        writer.ambient(loss=loss, enabled=enabled)
        fields = {"grad": grad, "label": label, "order": order, "requires_grad": requires_grad}
        writer.sample("parameter", "p", **fields)
    writer.finish()
    return writer


def program(dice: Random) -> Program | None:
    """A rule and another one, or an edit of it."""
    first = body(dice)
    second = body(dice)
    if dice.random() < 0.7:  # The same but for one clause or one literal.
        second = first.replace(dice.choice(LITERALS), dice.choice(LITERALS))
        clause, other = first.partition("expect ")[0], second.partition("expect ")[2]
        second = f"{clause}expect {other}" if dice.random() < 0.5 else second
        if dice.random() < 0.4:
            second = first.replace(
                "each step", f"each step {dice.choice(['every 2 steps', 'every 4 steps'])}"
            )
            second = second.replace("steps every 2 steps", "steps").replace(
                "steps every 3 steps", "steps"
            )
        elif dice.random() < 0.5:
            second = first.replace(
                "expect ", f"expect {dice.choice(LITERALS)} {dice.choice(['and', 'or'])} "
            )
    text = f"{VOCABULARY}\n\ninvariant a {{ {first} }}\n\ninvariant b {{ {second} }}"
    return load_text(text).program


def violated(rule: Rule, writer: Writer) -> set[object]:
    """Where a rule is violated."""
    return {
        (each.instance.at, each.instance.subjects)
        for each in interpret([rule], trace(writer)).decided
        if each.verdict == "violated"
    }


def check(seed: int, seen: Counter[str]) -> None:
    """What is said of one pair is so everywhere in a sample of the grid."""
    dice = Random(f"brute {seed}")
    found = program(dice)
    if found is None:
        return
    old, new = found.rules
    said = relate(old, new, found.vocabulary)
    seen[said.relation] += 1
    writer = jobs(dice, 150)
    before, after = violated(old, writer), violated(new, writer)
    lost, gained = bool(before - after), bool(after - before)
    context = (seed, old.source.text[-500:], said)
    possible = {
        "equivalent": not lost and not gained,
        "tightened": not lost,
        "loosened": not gained,
        "incomparable": True,
        "unknown": True,
    }
    assert possible[said.relation], context
    assert all(each.confirmed for each in said.witnesses) or said.relation == "unknown", context


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9))
def test_no_situation_of_a_grid_contradicts(seed: int) -> None:
    check(seed, Counter())


@pytest.mark.slow
def test_next_to_nothing_is_left_undecided() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        check(seed, seen)
    assert seen["unknown"] <= 4, seen
    assert min(seen[each] for each in ("equivalent", "tightened", "loosened", "incomparable")) >= 4

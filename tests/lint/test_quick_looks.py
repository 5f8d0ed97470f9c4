"""What lint decides without z3 is what z3 says, and the interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from tests.check.jobs import job, random_shape
from tests.check.strategies import loaded, spec
from tests.logic.redundant import OF_JOB, OF_PARAMETER, body
from tspec.check.interpret import interpret
from tspec.check.verdicts import Decision
from tspec.layout.patterns import common
from tspec.lint.bounds import truth
from tspec.lint.conditions import conditions
from tspec.lint.cost import cost_of, often
from tspec.lint.operands import entangled, something_may_follow
from tspec.lint.rules.constant_comparison import compared
from tspec.lint.shapes import shape_of, stricter
from tspec.logic import equivalent, implies, simplify
from tspec.resolve.program.rules import Compare, Holds, Rule
from tspec.resolve.program.sharding import fits


def of(*bodies: str) -> list[Rule]:
    return list(loaded(spec([f"  for p in parameters\n{each}" for each in bodies])))


@pytest.mark.slow
def test_what_is_not_asked_about_would_have_no_answer() -> None:
    seen: Counter[str] = Counter()
    for number in range(120):
        dice = Random(f"worth {number}")
        for rule in loaded(spec([body(dice) for _ in range(2)])):
            notes = simplify(rule, {}).notes
            if something_may_follow(rule):
                seen["asked"] += 1
                told = {(note.kind, note.subject) for note in simplify(entangled(rule), {}).notes}
                ours = {(note.kind, note.subject) for note in notes}
                assert told == ours or any(
                    found for c in conditions(rule) for _, found in compared(c)
                )
                continue
            constant = any(found for each in conditions(rule) for _, found in compared(each))
            assert not notes or constant, (notes, rule)
            seen["not asked"] += 1
    assert min(seen.values()) > 40, seen


def test_bounds_are_those_of_z3() -> None:
    seen: Counter[str | None] = Counter()
    found = of(*(f"  each step\n  expect {each}" for each in (*OF_PARAMETER, *OF_JOB)))
    for rule in found:
        assert isinstance(rule.expect, Holds)
        if not isinstance(rule.expect.condition, Compare):
            continue
        decided = truth(rule.expect.condition)
        seen[decided] += 1
        kinds = {note.kind for note in simplify(rule, {}).notes}
        assert (decided == "always") == ("always met" in kinds), rule.expect.condition
    assert seen["always"] >= 3 and seen["but for nan"] >= 2


def test_thresholds_are_ordered_as_z3_orders_them() -> None:
    seen: Counter[str] = Counter()
    shapes = (
        "  each step\n  when step > {a}\n  expect loss < {b} and epoch >= {a}",
        "  each step\n  when not step <= {a}\n  expect loss > {b} implies p.lr >= {a}",
        "  across dp\n  each step\n  when step > {a}\n  expect max(p.lr) < {b}",
        "  each step\n  expect any(loss < {a}, over: 3 steps) or not {b} <= norm(p.data)",
        "  each step\n  expect p.order != {a} and {b} > loss",
    )
    for number in range(80):
        dice = Random(f"thresholds {number}")
        shape = dice.choice(shapes)
        one, other = of(*(shape.format(a=dice.randint(1, 3), b=dice.randint(1, 3)) for _ in "ab"))
        assert shape_of(one).key == shape_of(other).key
        if shape_of(one) == shape_of(other):
            assert equivalent(one, other).yes
            continue
        known = "any(" not in shape  # Of folds over time z3 knows nothing.
        if stricter(one, other):
            seen["stricter"] += 1
            assert not known or implies(one, other).yes, (one, other)
            found = interpret([one, other], job(random_shape(dice))).decided
            broken = {name: _broken(found, name) for name in (one.qualified, other.qualified)}
            assert broken[other.qualified] <= broken[one.qualified]
        else:
            seen["not"] += 1
            assert not implies(one, other).yes, (one, other)
    assert min(seen.values()) > 10, seen


def _broken(found: Sequence[Decision], rule: str) -> set[tuple[object, ...]]:
    return {
        (each.instance.ranks, each.instance.subjects, each.instance.at)
        for each in found
        if each.instance.rule == rule and each.verdict == "violated"
    }


def test_shapes_differ_where_anything_but_a_number_does() -> None:
    texts = (
        "  each step\n  expect loss < 1", "  each step\n  expect loss <= 1",
        "  each epoch\n  expect loss < 1", "  each step every 2 steps\n  expect loss < 1",
        "  each step\n  when step > 1\n  expect loss < 1", "  each step\n  expect p.lr < 1",
        "  each step\n  expect mean(loss, over: 2 steps) < 1",
        "  each step\n  expect mean(loss, over: 3 steps) < 1", "  each step\n  expect epoch < 1",
    )  # fmt: skip
    assert len({shape_of(rule).key for rule in of(*texts)}) == len(texts)


def test_how_often_a_rule_is_looked_at() -> None:
    rules = of(
        "  each step\n  expect norm(p.data) < 1",
        "  each step every 10 steps\n  expect norm(p.data) < 1",
        "  each step\n  when step <= 20\n  expect norm(p.data) < 1",
        "  each step\n  when step == 3 or divisible(step, by: 50)\n  expect norm(p.data) < 1",
        "  each step every 10 steps\n  when step != 30 and p.lr > 1\n  expect norm(p.data) < 1",
        "  each step once\n  expect norm(p.data) < 1",
        "  each run\n  expect norm(p.data) < 1",
        "  each step\n  when step > 5 implies divisible(step + 1, by: 4)\n  expect norm(p.data) < 1",
    )
    assert [often(rule) for rule in rules] == [1, 0.1, 0, 0.02, 0.1, 0, 0, 0.25]


def test_what_a_rule_reads() -> None:
    rules = of(
        "  each step\n  expect norm(p.data) < 1",
        "  across dp\n  during update every 2 steps\n  expect same(p.data) or old(same(p.data))",
        "  each step\n  expect p.data.dtype == float32",
        "  each step\n  expect norm(p.data) < first(norm(p.data))",
    )
    costs = [cost_of(rule) for rule in rules]
    assert [each.passes for each in costs] == [1, 10, 0, 1]
    assert [each.collectives for each in costs] == [0, 0.5, 0, 0]
    assert costs[0].bytes == 4e9


def test_patterns_have_a_name_in_common_or_none() -> None:
    seen: Counter[bool] = Counter()
    names = ["".join(each) for size in range(6) for each in product("ab.", repeat=size)]
    for number in range(400):
        dice = Random(f"patterns {number}")
        one, other = ("".join(dice.choices("ab.*", k=dice.randint(0, 4))) for _ in "ab")
        found = common(one, other)
        seen[found is None] += 1
        if found is not None:
            assert fits(one, found) and fits(other, found), (one, other, found)
        else:
            both = [each for each in names if fits(one, each) and fits(other, each)]
            assert not both, (one, other)
    assert min(seen.values()) > 50, seen

"""What is said of two versions of a rule is so in random jobs, as the interpreter decides them."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.check.jobs import job, random_shape
from tests.check.strategies import body as any_body
from tests.check.strategies import loaded, spec
from tests.check.vocabulary import VOCABULARY
from tests.diff.edits import edited
from tests.logic.redundant import OF_JOB, OF_PARAMETER
from tests.logic.redundant import body as redundant_body
from tspec.check.interpret import interpret
from tspec.diff import relate
from tspec.resolve import load_text
from tspec.resolve.program.rules import Rule
from tspec.trace.model import Trace

MIRRORED = {"tightened": "loosened", "loosened": "tightened"}


def versions(dice: Random) -> tuple[Rule, Rule] | None:
    """A random rule and an edit of it; None where the edit is no rule."""
    body = redundant_body(dice) if dice.random() < 0.6 else any_body(dice)
    pool = (*OF_JOB, *OF_PARAMETER) if "for p in" in body else OF_JOB
    other = edited(dice, body, pool)
    [*old], [*new] = loaded(spec([body])), loaded(spec([other]))
    return (old[0], new[0]) if old and new else None


def violated(rule: Rule, trace: Trace) -> set[object]:
    """The instances that a rule calls violated."""
    return {
        (each.instance.ranks, each.instance.at, each.instance.subjects)
        for each in interpret([rule], trace).decided
        if each.verdict == "violated"
    }


def check(number: int, seen: Counter[str], jobs: int = 3) -> None:
    """One random pair: its relation, the mirrored one, and what jobs say."""
    dice = Random(f"diff {number}")
    pair = versions(dice)
    if pair is None:
        return
    old, new = pair
    vocabulary = load_text(VOCABULARY).program.vocabulary  # type: ignore[union-attr]
    found, back = relate(old, new, vocabulary), relate(new, old, vocabulary)
    said = (number, old.source.slice(old.spans.whole), new.source.slice(new.spans.whole), found)
    seen[found.relation] += 1
    mirrored = MIRRORED.get(found.relation, found.relation)
    assert "unknown" in (mirrored, back.relation) or back.relation == mirrored, (said, back)
    assert all(each.confirmed for each in found.witnesses) or found.relation == "unknown", said
    for _ in range(jobs):
        trace = job(random_shape(dice))
        before, after = violated(old, trace), violated(new, trace)
        seen["lost"] += bool(before - after)
        seen["gained"] += bool(after - before)
        if found.relation in ("equivalent", "tightened"):
            assert before <= after, said
        if found.relation in ("equivalent", "loosened"):
            assert after <= before, said


@pytest.mark.slow
def test_what_is_said_is_so_in_random_jobs() -> None:
    seen: Counter[str] = Counter()
    for number in range(60):
        check(number, seen)
    assert min(seen[each] for each in ("equivalent", "tightened", "loosened", "incomparable")) > 3
    assert seen["lost"] > 10 and seen["gained"] > 10, seen


def test_a_rule_is_equivalent_to_itself() -> None:
    vocabulary = load_text(VOCABULARY).program.vocabulary  # type: ignore[union-attr]
    for number in range(60):
        for rule in loaded(spec([any_body(Random(f"itself {number}"))])):
            assert relate(rule, rule, vocabulary).relation == "equivalent", rule.source.text[-300:]

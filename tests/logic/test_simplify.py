"""Simplified rules decide every instance as the original does; what is found is said by name."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
import z3

from tests.check.agreement import decided_otherwise
from tests.check.building import HEAD, rules
from tests.check.jobs import job, random_shape
from tests.check.strategies import loaded, spec
from tests.logic.redundant import body, pair
from tspec.check.interpret import interpret
from tspec.logic import implies, removes_implied, simplify, simplify_program
from tspec.logic.encode import Encoder
from tspec.logic.simplify import MOST
from tspec.resolve import load_text
from tspec.resolve.program.rules import Holds, Rule
from tspec.resolve.program.text import text
from tspec.trace.model import Sample, Trace

CASES = 100


@pytest.mark.slow
def test_simplified_and_original_agree() -> None:
    seen: Counter[str] = Counter()
    for number in range(CASES):
        dice = Random(f"simplify {number}")
        found = loaded(spec([body(dice) for _ in range(3)]))
        trace = job(random_shape(dice))
        for rule in found:
            simpler = simplify(rule, {})
            seen.update({note.kind for note in simpler.notes})
            assert decided_otherwise(rule, simpler.rule, trace) == []
            decided = {each.verdict for each in interpret([rule], trace).decided}
            if any(note.kind == "never due" for note in simpler.notes):
                assert decided <= {"idle", "unknown"}
            if any(note.kind == "always met" for note in simpler.notes) and not rule.across:
                assert "violated" not in decided
    assert seen["dropped"] > 30 and seen["never due"] > 2 and seen["always met"] > 5, seen


def with_enabled(trace: Trace, value: bool) -> Trace:
    """The job in which `enabled` is known from the first record on, and always the same."""
    streams = []
    for stream in trace.streams:
        first = stream.records[0]
        known = Sample(first.seq, first.context, "context", "", {"enabled": value})
        others = (
            replace(record, fields={k: v for k, v in record.fields.items() if k != "enabled"})
            if isinstance(record, Sample)
            else record
            for record in stream.records
        )
        streams.append(replace(stream, records=(known, *others)))
    return replace(trace, streams=tuple(streams))


@pytest.mark.slow
def test_what_is_given_changes_no_verdict_where_it_is_so() -> None:
    seen: Counter[str] = Counter()
    for number in range(CASES):
        dice = Random(f"given {number}")
        value = dice.random() < 0.5
        trace = with_enabled(job(random_shape(dice)), value)
        for rule in loaded(spec([body(dice).replace("when ", "when (enabled or loss > 1) and ")])):
            simpler = simplify(rule, {"enabled": value})
            seen.update({note.kind for note in simpler.notes})
            assert decided_otherwise(rule, simpler.rule, trace) == []
            if simpler.idle:
                decided = {each.verdict for each in interpret([rule], trace).decided}
                assert decided <= {"idle", "unknown"}
    assert seen["dropped"] > CASES / 4, seen


def violated(rule: Rule, trace: Trace) -> set[object]:
    """The instances that a rule calls violated, whatever it is called."""
    return {
        (each.instance.ranks, each.instance.at, each.instance.subjects)
        for each in interpret([rule], trace).decided
        if each.verdict == "violated"
    }


@pytest.mark.slow
def test_what_is_implied_is_violated_nowhere_else() -> None:
    yes = 0
    for number in range(CASES):
        dice = Random(f"implied {number}")
        found = loaded(pair(dice))
        trace = job(random_shape(dice))
        for strong in found:
            for weak in found:
                if strong is not weak and implies(strong, weak).yes:
                    yes += 1
                    assert violated(weak, trace) <= violated(strong, trace), strong.source.text[
                        -800:
                    ]
    assert yes > CASES / 4


def test_a_rule_that_acts_sooner_says_something() -> None:
    """As the rules of `std.health` on gradients that are all zero, of which one waits."""
    text = HEAD + "".join(
        f"invariant below_{limit} {{ each step expect loss < {limit} else {action} }}\n"
        for limit, action in (
            (5, "warn after 3 consecutive steps"),
            (6, "warn"),
            (7, "warn after 4 consecutive steps"),
        )
    )
    program = load_text(text).program
    assert program is not None
    implied = [
        note.rule.name for note in simplify_program(program, {})[1] if note.kind == "implied"
    ]
    assert implied == ["below_7"]


# --- what is found ------------------------------------------------------------------------------


def simplified(condition: str, claim: str = "expect finite(p.data)") -> str:
    """What is left of a `when`."""
    [rule] = rules(f"for p in parameters before optimizer.step when {condition} {claim}")
    found = simplify(rule, {}).rule
    return "nothing" if found.when is None else text(found.when)


def test_what_the_rest_implies_is_left_out() -> None:
    assert simplified("step > 1 and step > 20") == "step > 20"
    assert simplified("step > 20 and step > 1") == "step > 20"
    assert simplified("step >= 0") == "nothing"
    assert simplified("p.lr > 1 or p.lr > 2") == "p.lr > 1"
    assert simplified("present(p.grad) and norm(p.grad) > 1 and norm(p.grad) > 0") == (
        "present(p.grad) and norm(p.grad) > 1"
    )


def test_a_guard_stays_as_absent_is_not_false() -> None:
    kept = "present(p.grad) and norm(p.grad) > 1"
    assert simplified(kept) == kept


def test_nan_is_taken_at_its_word() -> None:
    assert simplified("loss > 1 or not loss > 1") == "loss > 1 or not loss > 1"
    assert simplified("loss == loss and loss < 1") == "loss < 1"
    assert simplified("not loss > 1 and loss <= 1") == "loss <= 1"
    assert simplified("not loss > 1 and not loss > 2") == "not loss > 1"


def test_what_when_implies_is_left_out_of_expect() -> None:
    [rule] = rules("each step when step > 2 expect step > 1 implies loss > 0")
    assert text(simplify(rule, {}).rule.expect.condition) == "loss > 0"  # type: ignore[union-attr]


def test_when_stays_where_a_cut_off_window_would_be_decided_early() -> None:
    [rule] = rules("each step when step >= 0 expect contains backward")
    assert simplify(rule, {}).rule.when is not None


def test_across_the_members_conditions_are_kept_apart() -> None:
    [rule] = rules(
        "for p in parameters across dp each step when p.lr > 0 or not p.requires_grad "
        "expect p.lr > 0 and same(p.data)"
    )
    assert simplify(rule, {}).rule == rule


def messages(*texts: str, **given: bool | int | str) -> list[str]:
    """What is said of a program."""
    declared = "\n".join(texts)
    program = load_text(HEAD + declared).program
    assert program is not None
    _, notes = simplify_program(program, {name.replace("_", "."): v for name, v in given.items()})
    return [note.message for note in notes]


SPIKE = "invariant spike { each step when step > 10 expect loss <= 2 * previous(loss) }"


def test_what_is_said() -> None:
    assert messages("invariant a { each step when step > 3 and step < 2 expect loss > 0 }") == [
        "`t.a` is never due: its `when` cannot be true"
    ]
    assert messages("invariant a { each step expect count(parameters) >= 0 }") == [
        "`t.a` cannot be violated: its `expect` is never false when it is due"
    ]
    assert messages("invariant a { each step when step > 1 and step > 2 expect loss > 0 }") == [
        "`t.a`: `step > 1` follows from the rest and is left out"
    ]
    late = SPIKE.replace("spike", "late").replace("10", "20")
    assert messages(SPIKE, late) == ["`t.late` says nothing that `t.spike` does not say"]


def test_what_is_given_is_decided() -> None:
    alike = "invariant alike { for p in parameters across tp each step expect same(p.data) }"
    assert messages(alike, tp=1) == ["`t.alike` has nothing to check: a group of one rank on tp"]
    assert messages(alike, tp=2) == []
    device = "invariant d { each step when cuda.available and step > 3 expect loss > 0 }"
    assert messages(device, cuda_available=False) == [
        "`t.d` has nothing to check: cuda.available is false"
    ]
    assert messages(device, cuda_available=True) == [
        "`t.d`: `cuda.available` follows from the rest and is left out"
    ]
    assert messages(device, cuda_available=1) == []


def test_rules_that_are_idle_with_what_is_given_go() -> None:
    both = load_text(HEAD + SPIKE + "invariant a { across tp each step expect same(loss) }").program
    assert both is not None
    program, _ = simplify_program(both, {"tp": 1})
    assert [rule.name for rule in program.rules] == ["spike"]


# --- what is implied ----------------------------------------------------------------------------


def remaining(*bodies: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The rules that are kept, and those that are removed with by whom."""
    kept, removed = removes_implied(rules(*bodies))
    return [each.name for each in kept], [(a.name, b.name) for a, b in removed]


def test_a_rule_that_is_due_more_often_or_asks_for_more_implies() -> None:
    assert remaining(
        "for p in parameters each step when step > 5 expect p.lr > 0",
        "for q in parameters each step when step > 1 expect q.lr > 1",
    ) == (["r1"], [("r0", "r1")])


def test_of_rules_that_say_the_same_the_first_stays() -> None:
    assert remaining(
        "each step when step > 5 expect loss > 0",
        "each step when step >= 6 expect loss > 0",
        "each step when not step < 6 expect 0 < loss",
    ) == (["r0"], [("r1", "r0"), ("r2", "r0")])


def test_filters_and_thinning_leave_fewer_instances() -> None:
    assert remaining(
        "for p in parameters each step expect p.lr > 0",
        "for p in parameters(requires_grad: true) each step expect p.lr > 0",
        "for p in parameters each step every 10 steps expect p.lr > 0",
        "for p in parameters each epoch expect p.lr > 0",
    ) == (["r0", "r3"], [("r1", "r0"), ("r2", "r0")])


def test_look_backs_differ_where_the_instances_do() -> None:
    kept, _ = remaining(
        "each step expect loss > previous(loss)",
        "each step every 10 steps expect loss > previous(loss)",
    )
    assert kept == ["r0", "r1"]


def test_a_claim_with_more_filters_implies() -> None:
    assert remaining(
        "each step when step > 1 expect contains optimizer.step",
        "each step expect contains optimizer.step(lr: 0.5)",
    ) == (["r1"], [("r0", "r1")])


def test_a_chain_ends_at_a_rule_that_is_kept() -> None:
    assert remaining(*(f"each step when step > {n} expect loss > 0" for n in (9, 5, 1))) == (
        ["r2"], [("r0", "r2"), ("r1", "r2")],
    )  # fmt: skip


def test_a_larger_tolerance_is_implied() -> None:
    assert remaining(
        "for p in parameters across dp each step expect spread(norm(p.data)) <= 4 * max(norm(p.data))",
        "for p in parameters across dp each step expect spread(norm(p.data)) <= 2 * max(norm(p.data))",
    ) == (["r1"], [("r0", "r1")])


def test_a_witness_is_a_situation_in_which_they_differ() -> None:
    strong, weak = rules(
        "each step when step > 5 expect loss > 0", "each step when step > 1 expect loss > 0"
    )
    found = implies(strong, weak)
    assert found.answer == "no"
    assert 1 < int(found.witness["step"]) <= 5


def test_answers_are_the_same_every_time() -> None:
    found = rules(
        "each step when step > 5 and loss > 1 expect loss <= 2 * previous(loss)",
        "each step when step > 1 expect loss <= 3 * previous(loss)",
    )
    assert len({str(implies(*found)) for _ in range(3)}) == 1


@pytest.mark.slow
def test_a_few_hundred_drafts_are_thinned() -> None:
    bodies = [
        f"for p in parameters each step when step > {n % 7} and p.order == {n % 5} "
        f"expect norm(p.data) <= {n + 1}"
        for n in range(200)
    ]
    kept, removed = removes_implied(rules(*bodies))
    assert len(kept) + len(removed) == 200 and len(kept) < 200


def bounds(count: int) -> Rule:
    """So many bounds of one value, of which the first is the tightest."""
    claim = " and ".join(f"loss < {number + 1}" for number in range(count))
    [rule] = rules(f"each step expect {claim}")
    return rule


@pytest.mark.slow
def test_nothing_is_asked_of_a_rule_with_very_many_conditions() -> None:
    assert len(simplify(bounds(MOST), {}).notes) == MOST - 1
    assert simplify(bounds(MOST + 1), {}).notes == ()


def test_the_encoding_of_a_chain_grows_with_its_length() -> None:
    def size(count: int) -> int:
        """The different nodes of z3's expressions for a chain of reads that may be missing."""
        [rule] = rules(
            "for p in parameters each step expect "
            + " and ".join(f"norm(p.data) < {number}" for number in range(count))
        )
        assert isinstance(rule.expect, Holds)
        meaning = Encoder().encode(rule.expect.condition)
        found: dict[int, z3.ExprRef] = {}
        waiting: list[z3.ExprRef] = [meaning.known, meaning.absent, meaning.value]
        while waiting:
            node = waiting.pop()
            if node.get_id() not in found:
                found[node.get_id()] = node
                waiting += node.children()
        edges = sum(node.num_args() for node in found.values())
        return len(found) + edges

    assert size(80) < 2.5 * size(40)

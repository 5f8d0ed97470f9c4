"""`docs/design/semantics.md`, "Instances": a test for each line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.check.building import Writer, decide, rules, table, tensor, trace, verdicts
from tspec.check.columnar import check
from tspec.check.interpret import interpret
from tspec.check.verdicts import Verdicts
from tspec.resolve.program.rules import Rule
from tspec.trace.model import MOST_UNRECORDED, Missing, Ref, Trace

SAME = "for p in parameters across dp each step expect same(p.data)"


def rank(number: int, write: Callable[[Writer], Any], *peers: int, axis: str = "dp") -> Writer:
    """A rank that knows its peers, has one parameter, and then does what `write` does."""
    out = Writer(number)
    if peers:
        out.group(axis, *peers)
    out.step(1)
    out.sample("parameter", "w", data=tensor(1), requires_grad=True, lr=1.0)
    write(out)
    return out


def ends(out: Writer) -> None:
    """The step and the run end."""
    out.finish()


def both(first: Callable[[Writer], Any], second: Callable[[Writer], Any]) -> tuple[Writer, Writer]:
    """Two ranks of one group."""
    return rank(0, first, 0, 1), rank(1, second, 0, 1)


def reasons(text: str, *writers: Writer, world: int | None = None) -> list[tuple[str, str]]:
    """Verdict and reason of each instance."""
    return [(d.verdict, d.reason) for d in decide(text, *writers, world=world).decided]


# --- one rank -----------------------------------------------------------------------------------


def test_each_rank_window_and_choice_of_subjects_is_an_instance() -> None:
    found = decide("for p in parameters each step expect step > 0", *both(ends, ends))
    assert [each.instance.ranks for each in found.decided] == [(0,), (1,)]


def test_a_windows_place_counts_those_that_began_in_the_step() -> None:
    out = Writer()
    for step in (1, 2):
        out.step(step)
        out.call("optimizer.step")
        out.sample("parameter", "late")
        out.call("optimizer.step")
    out.finish()
    assert list(table(decide("before optimizer.step expect step > 0", out))) == [
        ((1, 0),), ((1, 1),), ((2, 0),), ((2, 1),),
    ]  # fmt: skip
    found = decide("for p in parameters before optimizer.step expect step > 0", out)
    assert next(iter(table(found))) == ((1, 1), "late")


def test_every_combination_and_later_collections_use_earlier_variables() -> None:
    out = Writer()
    out.step(1)
    for name in "ab":
        out.sample("parameter", name)
    out.sample("module", "m", parameters=frozenset({Ref("parameter", "b")}))
    out.sample("module", "n", parameters=Missing.NOT_RECORDED)
    out.finish()
    found = decide("for m in modules\nfor p in m.parameters\neach step expect step > 0", out)
    assert list(table(found)) == [((1, 0), "m", "b")]
    found = decide("for m in modules\nfor p in parameters\neach step expect step > 0", out)
    assert len(found.decided) == 4


def test_how_subjects_are_written() -> None:
    out = Writer()
    out.step(1)
    out.sample("batch", "some object", tensors=(tensor(1), Missing.ABSENT, tensor(3)))
    out.call("backward")
    out.call("backward")
    out.finish()
    rule = "for b in batches\nfor t in b.tensors\neach step expect digest(t) > 0"
    assert list(table(decide(rule, out))) == [((1, 0), "#0", "0"), ((1, 0), "#0", "2")]
    rule = "for c in calls(backward)\neach step expect step > 0"
    assert list(table(decide(rule, out))) == [((1, 0), "#0"), ((1, 0), "#1")]
    rule = "for c in calls(backward)\nexpect step > 0"
    assert list(table(decide(rule, out))) == [((1, 0), "#0"), ((1, 1), "#1")]


def test_calls_of_one_group_are_counted_apart() -> None:
    def run(out: Writer) -> None:
        for group in ((0, 1), (out.rank,), (0, 1)):
            out.call("all_reduce", group=group, tensor=tensor(1, name="x"))
        out.finish()

    names = "when present(c.tensor.name) expect same(c.tensor.name)"
    rule = f"for c in calls(all_reduce) across c.group {names}"
    assert table(decide(rule, *both(run, run))) == {
        ((0, 1), (1, 0), "#0"): "holds",
        ((0, 1), (1, 1), "#1"): "holds",
        ((1, 0), "#0"): "idle",
    }


# --- groups -------------------------------------------------------------------------------------


def test_members_of_a_group_are_compared() -> None:
    def other(out: Writer) -> None:
        out.sample("parameter", "w", data=tensor(2))
        out.finish()

    assert table(decide(SAME, *both(ends, ends))) == {((0, 1), (1, 0), "w"): "holds"}
    assert table(decide(SAME, *both(ends, other))) == {((0, 1), (1, 0), "w"): "violated"}


def test_world_is_always_there() -> None:
    ranks = [rank(0, ends), rank(1, ends)]
    assert verdicts(SAME.replace("dp", "world"), *ranks) == ["holds"]


def test_an_unknown_axis_or_a_group_of_one_is_idle() -> None:
    assert reasons(SAME, rank(0, ends)) == [("idle", "no group dp")]
    assert reasons(SAME, rank(0, ends, 0)) == [("idle", "no group dp")]
    found = decide(SAME, rank(0, ends))
    assert found.decided[0].instance.ranks == (0,)
    assert found.notes == ("t.r0: no group dp",)


def test_several_axes_reach_the_connected_ranks() -> None:
    writers = []
    for number in range(4):
        out = Writer(number)
        out.group("tp", *((0, 1) if number < 2 else (2, 3)))
        out.group("pp", *((0, 2) if number % 2 == 0 else (1, 3)))
        out.step(1)
        out.finish()
        writers.append(out)
    found = decide("across tp, pp each step expect same(step)", *writers)
    assert [each.instance.ranks for each in found.decided] == [(0, 1, 2, 3)]
    found = decide("across tp, ep each step expect same(step)", *writers)
    assert [each.instance.ranks for each in found.decided] == [(0, 1), (2, 3)]


def test_a_subject_may_name_its_group() -> None:
    for replicas in ((0, 1), "dp"):

        def run(out: Writer, named: Any = replicas) -> None:
            out.sample("parameter", "w", replicas=named)
            out.finish()

        rule = "for p in parameters across p.replicas each step expect same(p.data)"
        assert table(decide(rule, *both(run, run))) == {((0, 1), (1, 0), "w"): "holds"}


def test_a_subject_without_a_group_is_idle() -> None:
    def run(out: Writer) -> None:
        out.sample("parameter", "w", replicas=Missing.ABSENT)
        out.finish()

    rule = "for p in parameters across p.replicas each step expect same(p.data)"
    assert verdicts(rule, *both(run, run)) == ["idle", "idle"]


# --- members ------------------------------------------------------------------------------------


def two_steps(out: Writer) -> None:
    out.call("backward")
    out.step(2)
    out.call("backward")
    out.finish()


def test_a_living_rank_that_had_the_subject_lacks_it() -> None:
    def loses(out: Writer) -> None:
        out.call("backward")
        out.step(2)
        out.call("backward")
        out.sample("parameter", "w", gone=True)
        out.finish()

    found = decide(SAME, *both(two_steps, loses))
    assert [(d.verdict, d.reason) for d in found.decided] == [
        ("holds", ""), ("violated", "rank 1 lacks it"),
    ]  # fmt: skip


def test_a_rank_that_never_had_the_subject_is_no_member() -> None:
    def more(out: Writer) -> None:
        out.sample("parameter", "own", data=tensor(5))
        out.finish()

    found = dict(zip(("own", "w"), reasons(SAME, *both(more, ends)), strict=True))
    assert found == {"own": ("idle", "one holder"), "w": ("holds", "")}


def test_a_dead_rank_makes_it_unknown() -> None:
    def dies(out: Writer) -> None:
        out.call("backward")

    found = reasons(SAME, *both(two_steps, dies))
    assert found == [("unknown", "cut off"), ("unknown", "rank 1 died")]
    assert reasons(SAME, rank(0, ends, 0, 1), world=2) == [("unknown", "rank 1 died")]


@pytest.mark.parametrize("checker", [interpret, check], ids=["interpreter", "columnar"])
def test_a_group_lists_a_bounded_number_of_ranks_that_have_no_recording(
    checker: Callable[[Sequence[Rule], Trace], Verdicts],
) -> None:
    rule = "for p in parameters across world before optimizer.step expect same(p.data)"
    out = Writer()
    out.step(1)
    out.sample("parameter", "w", data=tensor(5))
    out.call("optimizer.step")
    out.finish()
    [decided] = checker(rules(rule), trace(out, world=999_999)).decided
    assert (decided.verdict, decided.reason) == ("unknown", "rank 1 died")
    assert decided.instance.ranks == tuple(range(1 + MOST_UNRECORDED))


def test_a_batch_that_one_rank_has_is_its_own_business() -> None:
    def more(out: Writer) -> None:
        out.sample("batch", "x", tensors=(tensor(1),))
        out.finish()

    rule = "for b in batches across dp each step expect same(digest(b.tensors))"
    assert reasons(rule, *both(more, ends)) == [("idle", "one holder")]


def test_a_call_that_one_rank_does_not_make_is_lacking() -> None:
    def more(out: Writer) -> None:
        out.call("backward")
        out.finish()

    rule = "for c in calls(backward) across dp expect same(step)"
    assert reasons(rule, *both(more, ends)) == [("violated", "rank 1 lacks it")]


def test_a_window_that_one_rank_does_not_have_is_unknown() -> None:
    def saves(out: Writer) -> None:
        out.call("save")
        out.finish()

    rule = "for p in parameters across dp before save expect same(p.data)"
    assert reasons(rule, *both(saves, ends)) == [("unknown", "rank 1 has no such window")]


def test_once_is_once_for_the_group() -> None:
    def late(out: Writer) -> None:
        out.call("backward")
        out.step(2)
        out.call("backward")
        out.sample("parameter", "v", data=tensor(1))
        out.finish()

    def early(out: Writer) -> None:
        out.sample("parameter", "v", data=tensor(1))
        two_steps(out)

    rule = "for p in parameters across dp each step once expect same(p.data)"
    found = table(decide(rule, *both(early, late)))
    assert found == {((0, 1), (1, 0), "w"): "holds", ((0, 1), (1, 0), "v"): "idle"}


# --- verdicts -----------------------------------------------------------------------------------


def with_rate(lr: Any) -> Callable[[Writer], None]:
    def write(out: Writer) -> None:
        out.sample("parameter", "w", lr=lr)
        out.finish()

    return write


def test_when_of_the_members() -> None:
    rule = SAME.replace("expect", "when p.lr > 0 expect")
    unknown = with_rate(Missing.NOT_RECORDED)
    assert verdicts(rule, *both(with_rate(1.0), with_rate(2.0))) == ["holds"]
    assert reasons(rule, *both(with_rate(1.0), with_rate(0.0))) == [
        ("violated", "members differ on when")
    ]
    assert verdicts(rule, *both(with_rate(0.0), with_rate(0.0))) == ["idle"]
    assert verdicts(rule, *both(with_rate(1.0), unknown)) == ["unknown"]
    assert verdicts(rule, *both(with_rate(0.0), unknown)) == ["unknown"]


def test_when_without_across() -> None:
    rule = "for p in parameters each step when p.lr > 0 expect p.requires_grad"
    assert verdicts(rule, rank(0, with_rate(1.0))) == ["holds"]
    assert verdicts(rule, rank(0, with_rate(0.0))) == ["idle"]
    assert verdicts(rule, rank(0, with_rate(Missing.NOT_RECORDED))) == ["unknown"]
    assert verdicts(rule.replace("requires_grad", "lr > 1"), rank(0, with_rate(1.0))) == [
        "violated"
    ]


def test_when_comes_before_who_lacks_it() -> None:
    def loses(out: Writer) -> None:
        out.call("backward")
        out.step(2)
        out.call("backward")
        out.sample("parameter", "w", gone=True)
        out.finish()

    rule = SAME.replace("expect", "when step == 1 expect")
    assert verdicts(rule, *both(two_steps, loses)) == ["holds", "idle"]


def test_a_group_fold_is_unknown_unless_known_values_decide() -> None:
    def ranks(*digests: int | None) -> list[Writer]:
        def run(out: Writer) -> None:
            out.sample("parameter", "w", data=tensor(digests[out.rank]))
            out.finish()

        return [rank(number, run, *range(len(digests))) for number in range(len(digests))]

    assert verdicts(SAME, *ranks(1, 1, None)) == ["unknown"]
    assert verdicts(SAME, *ranks(1, 2, None)) == ["violated"]
    distinct = SAME.replace("same", "distinct")
    assert verdicts(distinct, *ranks(1, 2, None)) == ["unknown"]
    assert verdicts(distinct, *ranks(1, 1, None)) == ["violated"]


def test_what_is_no_group_fold_holds_on_each_member() -> None:
    rule = "for p in parameters across dp each step expect p.lr > 0"
    assert verdicts(rule, *both(with_rate(1.0), with_rate(2.0))) == ["holds"]
    assert verdicts(rule, *both(with_rate(1.0), with_rate(0.0))) == ["violated"]
    assert verdicts(rule, *both(with_rate(1.0), with_rate(Missing.NOT_RECORDED))) == ["unknown"]
    assert verdicts(rule, *both(with_rate(0.0), with_rate(Missing.NOT_RECORDED))) == ["violated"]


def test_a_violated_instance_shows_what_it_read() -> None:
    def other(out: Writer) -> None:
        out.sample("parameter", "w", data=tensor(2))
        out.finish()

    [found] = decide(SAME, *both(ends, other)).decided
    assert found.values == {"digest(p.data)": "rank 0: 1, rank 1: 2"}
    rule = "for p in parameters each step expect p.lr > 2"
    [found] = decide(rule, rank(0, ends)).decided
    assert (found.values, found.step) == ({"p.lr": "1"}, 1)


def test_a_rule_without_windows_has_no_instances() -> None:
    assert decide("before save expect step > 0", rank(0, ends)).decided == ()


def test_of_two_windows_of_one_place_the_one_that_began_last_counts() -> None:
    """When the inner call returns, it is not known that the outer one will match too."""
    out = Writer()
    out.step(1)
    out.begin("clip", max_norm=1.0)
    out.call("clip", {"total_norm": 2.0}, max_norm=3.0)
    out.end(total_norm=2.0)
    out.finish()
    for kind in ("after", "during"):
        found = decide(f"{kind} clip(total_norm: 2.0) expect clip.max_norm == 3", out)
        assert table(found) == {((1, 0),): "holds"}

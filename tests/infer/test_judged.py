"""Which claims become drafts: none that is vacuous, a setting of the runs, or its own condition."""

from tspec.infer.drafts import Draft, Dropped, judge
from tspec.infer.evidence import ClaimEvidence, Column
from tspec.infer.heads import Claim, RuleHead

ALL = 2**20 - 1


def judged(
    claim: Claim, claimed: Column, conditions: dict[str, int] | None = None
) -> Draft | Dropped:
    """What becomes of a claim on 20 instances of one run, given where its conditions are true."""
    columns = {(claim.head, claim.expect, claim.guard): claimed}
    for text, true in (conditions or {}).items():
        columns[claim.head, text, None] = Column(true, ALL & ~true)
    drafts, dropped = judge([claim], ClaimEvidence(columns, {claim.head: (ALL,)}, {}))
    return (*drafts, *dropped)[0]


def head(*conditions: str) -> RuleHead:
    return RuleHead((), None, "each step", conditions)


def test_a_tensor_that_never_changes_does_not_change_in_a_forward() -> None:
    claim = Claim("change", head(), "changed(x) only during forward", "", witness="changed(x)")
    still = judged(claim, Column(ALL, 0), {"changed(x)": 0})
    assert isinstance(still, Dropped)
    assert still.reason == "vacuous: `changed(x)` was seen 0 times"
    assert isinstance(judged(claim, Column(ALL, 0), {"changed(x)": 0b11111}), Draft)


def test_a_zero_that_always_holds_is_a_setting_and_one_that_depends_on_the_phase_is_none() -> None:
    claim = Claim("argument", head("phase == eval"), "c.p == 0", "", distinguishes=True)
    always = judged(claim, Column(ALL, 0), {"phase == eval": 0x3FF})
    assert isinstance(always, Dropped)
    assert always.reason == "held throughout: a setting of these runs"
    draft = judged(claim, Column(0x3FF, ALL & ~0x3FF), {"phase == eval": 0x3FF})
    assert isinstance(draft, Draft)
    assert draft.when == "phase == eval"


def test_that_there_are_calls_is_no_condition_for_their_number() -> None:
    conditions = ("count(calls(backward)) > 0", "count(calls(optimizer.step)) > 0")
    claim = Claim("contains", head(*conditions), "count(calls(backward)) == 1", "")
    found = judged(claim, Column(0x3FF, ALL & ~0x3FF), dict.fromkeys(conditions, 0x3FF))
    assert isinstance(found, Draft)
    assert found.when == "count(calls(optimizer.step)) > 0"
    contains = Claim("contains", head(conditions[0]), "contains backward", "")
    alone = judged(contains, Column(0x3FF, ALL & ~0x3FF), {conditions[0]: 0x3FF})
    assert isinstance(alone, Dropped)

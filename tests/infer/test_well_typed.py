"""Whatever the evidence is, the drafts that are written resolve, type and are in canonical form."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tspec.infer import STANDARD, select, vocabulary
from tspec.infer.drafts import Draft, judge
from tspec.infer.emit import emit, name_all
from tspec.infer.evidence import ClaimEvidence, Column, key_of
from tspec.infer.heads import Claim, RuleHead
from tspec.infer.preconditions import Condition, Precondition, deduce
from tspec.infer.relations import RELATIONS
from tspec.infer.survey import SeenEvent, SeenKind, Survey
from tspec.infer.typed import keep_typed
from tspec.resolve import load_text
from tspec.source import Source
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse

USES = (*STANDARD, "std.losses", "std.megatron", "std.moe", "std.transformers")
"""All shipped modules that declare events or kinds of state."""

INSTANCES = 48
CLASSES = ("torch.nn.Dropout", "torch.nn.LayerNorm", "torch.nn.Linear")
MOST = 80
"""Drafts that one example writes; more would only cost time."""


def a_survey(chance: random.Random) -> Survey:
    """A survey of runs in which some of what the vocabulary declares was seen."""
    known = vocabulary(USES)
    events = tuple(
        SeenEvent(
            event,
            chance.choice([0.05, 0.9, 1.0, 3.0, 40.0]),
            frozenset(field.name for field in event.fields if chance.random() < 0.8),
        )
        for event in known.events
        if chance.random() < 0.6
    )
    kinds = tuple(
        SeenKind(kind, frozenset(field.name for field in kind.fields if chance.random() < 0.9))
        for kind in known.entities
        if chance.random() < 0.8
    )
    axes = tuple(group.name for group in known.groups if chance.random() < 0.4)
    ambient = frozenset({"autocast.enabled", "autocast.dtype"} if chance.random() < 0.5 else ())
    return Survey(events, kinds, axes, CLASSES, ambient, chance.randrange(1, 100))


def some_evidence(claims: tuple[Claim, ...], chance: random.Random) -> ClaimEvidence:
    """Truths at random. Of two conditions each often covers what the other does not."""
    columns: dict[tuple[RuleHead, str, str | None], Column] = {}
    everything = 2**INSTANCES - 1
    for claim in claims:
        true = chance.getrandbits(INSTANCES) | chance.getrandbits(INSTANCES)
        columns[key_of(claim)] = Column(true, everything & ~true)
        part = true & chance.getrandbits(INSTANCES)
        for condition in (*claim.head.conditions, *filter(None, [claim.witness])):
            drawn = chance.choice([part, true & ~part, true, everything, chance.getrandbits(9)])
            columns.setdefault((claim.head, condition, None), Column(drawn, everything & ~drawn))
    return ClaimEvidence(columns, {claim.head: (everything,) for claim in claims}, {})


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_every_draft_that_is_written_is_well_typed(seed: int) -> None:
    chance = random.Random(seed)
    seen = a_survey(chance)
    claims = tuple(dict.fromkeys(claim for propose in RELATIONS for claim in propose(seen)))
    claims = tuple(chance.sample(claims, min(len(claims), MOST)))
    drafts, _ = judge(claims, some_evidence(claims, chance))
    drafts = select.prefer_exact(select.reduce_sequences(drafts))
    resolved, ill_typed = keep_typed(drafts, USES)
    assert [each.reason for each in ill_typed] == []
    text = emit([draft for draft, _ in resolved], "drafts", USES, ("run",))
    loaded = load_text(text, name="drafts.tspec")
    assert loaded.program is not None, loaded.diagnostics
    assert len(loaded.program.rules) == len(drafts)
    assert format_file(parse(Source("drafts.tspec", text)).file) == text


def test_a_guard_stands_before_all_alternatives() -> None:
    norm, linear = Condition("isinstance(p.module, A)", 0x1F), Condition("q", 0x3E0)
    found = deduce(0x3FF, 0xC00, [norm, linear])
    assert found is not None
    assert found.under("present(p.grad)") == "present(p.grad) and (isinstance(p.module, A) or q)"


@pytest.mark.parametrize(
    ("conjuncts", "alternatives", "guard", "said"),
    [
        ((), (), None, None),
        ((), (), "g and h", "g and h"),
        (("a",), (), "g", "g and a"),
        (("g and a",), (), "g", "g and a"),
        ((), ("g and a",), "g", "g and a"),
        ((), ("a", "b"), None, "a or b"),
        (("c",), ("a", "g and b"), "g", "g and c and (a or g and b)"),
    ],
)
def test_each_conjunct_is_said_once(
    conjuncts: tuple[str, ...], alternatives: tuple[str, ...], guard: str | None, said: str | None
) -> None:
    assert Precondition(conjuncts, alternatives, 0).under(guard) == said


def test_a_draft_that_does_not_type_is_left_out_and_the_others_are_kept() -> None:
    head = RuleHead(("p in parameters",), "world", "each step", ())
    good = Draft(Claim("consistent", head, "same(p.data)", "They drift."), None, 9, 0)
    bad = Draft(Claim("consistent", head, "same(p.grad)", "They drift."), None, 7, 2)
    kept, dropped = keep_typed((bad, good), STANDARD)
    assert [draft for draft, _ in kept] == [good]
    assert [rule.name for _, rule in kept] == [name_all((good,))[good.key]]
    [only] = dropped
    assert only.claim == bad.claim
    assert (only.held, only.broken) == (7, 2)
    assert only.reason.startswith("does not type: ")
    assert "p.grad" in only.reason

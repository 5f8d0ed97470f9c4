"""Advice that all runs kept to becomes a draft; advice that a run did not follow, or that one run alone shows, does not."""

import pytest

from tspec.infer import STANDARD, vocabulary
from tspec.infer.drafts import Draft, Dropped, judge
from tspec.infer.evidence import ClaimEvidence, Column, key_of
from tspec.infer.heads import Claim
from tspec.infer.relations.advice import propose
from tspec.infer.survey import SeenEvent, Survey
from tspec.infer.typed import keep_typed


def advised() -> dict[str | None, Claim]:
    events = tuple(
        SeenEvent(event, 1.0, frozenset())
        for event in vocabulary(STANDARD).events
        if event.name == "optimizer.step"
    )
    claims = propose(Survey(events, (), (), (), frozenset(), 40))
    return {claim.name: claim for claim in claims}


def judged(claim: Claim, *runs: tuple[int, int]) -> Draft | Dropped:
    """A claim that held so often, and was broken so often, in each run."""
    true = false = place = 0
    instances = []
    for held, broken in runs:
        true |= (2**held - 1) << place
        false |= (2**broken - 1) << place + held
        instances.append((2 ** (held + broken) - 1) << place)
        place += held + broken
    column = {key_of(claim): Column(true, false)}
    drafts, dropped = judge([claim], ClaimEvidence(column, {claim.head: tuple(instances)}, {}))
    return (*drafts, *dropped)[0]


def test_each_piece_of_advice_types_in_the_words_of_recordings() -> None:
    claims = advised().values()
    typed, ill_typed = keep_typed([Draft(one, one.guard, 9, 0) for one in claims], STANDARD)
    assert ill_typed == ()
    names = {rule.name for _, rule in typed}
    assert {
        "every_layer_is_used",
        "models_that_only_answer_keep_their_statistics",
        "schedules_fit_the_run",
        "copies_follow_what_is_trained",
    } <= names
    assert "language_models_do_not_look_ahead" not in names  # of an event that is not recorded


def test_a_draft_keeps_the_name_and_the_sentence_of_the_advice() -> None:
    claim = advised()["every_layer_is_used"]
    assert claim.breaks.startswith("A layer that no forward pass of its model calls")
    assert "Look at" not in claim.breaks
    assert claim.head.clauses() == ("for m in modules(leaf: true)", "each epoch")


@pytest.mark.parametrize(
    ("runs", "is_drafted"),
    [
        (((1, 0), (1, 0)), True),
        (((1, 0),), False),
        (((1, 0), (0, 1)), False),
        (((2, 0), (0, 0)), True),
    ],
)
def test_what_a_run_shows_once_is_seen_twice(
    runs: tuple[tuple[int, int], ...], is_drafted: bool
) -> None:
    claim = advised()["copies_follow_what_is_trained"]
    assert isinstance(judged(claim, *runs), Draft) is is_drafted


def test_what_a_step_shows_is_seen_more_often() -> None:
    claim = advised()["outputs_are_finite"]
    assert isinstance(judged(claim, (2, 0), (2, 0)), Dropped)
    assert isinstance(judged(claim, (20, 0), (20, 0)), Draft)
    assert isinstance(judged(claim, (20, 0), (20, 1)), Dropped)


def test_nothing_is_advised_to_what_trains_nothing() -> None:
    assert propose(Survey((), (), (), (), frozenset(), 0)) == ()

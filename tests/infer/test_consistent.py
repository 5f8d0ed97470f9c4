"""Claims that ranks agree are of what they set, not of what is measured."""

from __future__ import annotations

from tspec.infer import STANDARD, vocabulary
from tspec.infer.relations.consistent import propose
from tspec.infer.survey import SeenEvent, Survey


def test_measured_numbers_of_calls_are_not_claimed_to_be_equal() -> None:
    [step] = [event for event in vocabulary(STANDARD).events if event.name == "optimizer.step"]
    fields = frozenset(field.name for field in step.fields)
    survey = Survey(
        events=(SeenEvent(step, 1.0, fields),),
        kinds=(),
        axes=("world",),
        classes=(),
        ambient=frozenset(),
        steps=10,
    )
    claimed = {claim.expect for claim in propose(survey)}
    assert "same(optimizer.step.lr)" in claimed
    assert {"scaled", "lr"} <= fields and "same(optimizer.step.scaled)" not in claimed

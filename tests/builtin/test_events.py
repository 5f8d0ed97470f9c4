"""The rows of events name events that ship."""

from __future__ import annotations

from tspec.builtin.events import EVENTS, FETCHES, OTHER, UPDATES, roles_of
from tspec.resolve.load import load
from tspec.resources import shipped


def test_every_row_is_a_shipped_event() -> None:
    loaded = load(sorted(shipped("stdlib").glob("*.tspec")))
    assert loaded.program is not None
    declared = {event.name for event in loaded.program.vocabulary.events}
    assert sorted({*EVENTS} - declared) == []


def test_the_events_of_a_role() -> None:
    assert sorted(UPDATES) == ["optimizer.step", "update"]
    assert sorted(FETCHES) == ["fetch"]


def test_an_event_without_a_row_may_change_anything() -> None:
    assert roles_of("train_one_batch") is OTHER
    assert (OTHER.before, OTHER.after) == ("first calls", "first calls")

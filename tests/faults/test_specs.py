"""What tspec does with specs that a random edit made wrong, or odd."""

import random
from pathlib import Path

import pytest

from tests.families import family
from tests.faults.specs import edited, failing, run


@pytest.mark.parametrize("count", family((50, 100), {"50"}))
def test_an_edited_spec_brings_no_fault(count):
    outcome = run(count, seed=20260101, every=1)
    assert [each.problem for each in outcome.failures] == []
    assert outcome.counts == {"no fault": count}


def test_the_same_seed_makes_the_same_specs():
    assert edited(random.Random("1:2")) == edited(random.Random("1:2"))


def test_a_fault_is_named_with_its_spec(tmp_path: Path, monkeypatch):
    def fails(*given, **named):
        raise RecursionError("too deep")

    monkeypatch.setattr("tests.faults.specs.load_text", fails)
    found = failing(7, "", "edition 2026\n", tmp_path)
    assert found is not None
    assert (found.number, found.stage, found.text) == (7, "load", "edition 2026\n")
    assert "RecursionError: too deep" in str(found)

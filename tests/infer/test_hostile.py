"""Drafts are a spec that reads back, whatever the folder of a recording is called."""

import pytest

from tests.faults.hostile import HOSTILE, unprintable
from tspec.infer.drafts import Draft
from tspec.infer.emit import emit
from tspec.infer.heads import Claim, RuleHead
from tspec.source import Source
from tspec.syntax.parse import parse


@pytest.mark.parametrize("run", HOSTILE)
def test_a_draft_names_its_runs_whatever_they_are_called(run: str) -> None:
    claim = Claim("change", RuleHead((), None, "each step", ()), "loss < 1", "It does not learn.")
    text = emit([Draft(claim, None, 1, 0)], "drafts", ["std.torch"], [run, "runs/b"])
    assert unprintable(text) == set()
    parsed = parse(Source("drafts.tspec", text))
    assert parsed.diagnostics == ()
    (draft,) = parsed.file.declarations
    entry = next(each for each in draft.inferred.entries if each.key.text == "from")
    assert [value.value for value in entry.values] == [run, "runs/b"]

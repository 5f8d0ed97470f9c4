"""Each function that a field's declaration may call has code in a job, and gets what is followed for it."""

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tspec.builtin.field_functions import FIELD_FUNCTIONS, GENERAL
from tspec.resolve import load_text
from tspec.runtime.live import EventSpec, FieldSpec, LiveJob, WatchSpec

PAGE = Path(__file__).resolve().parents[2] / "docs/language.md"
SWAPPED = ("call", "rows_swapped", (("name", "input"), ("name", "target"), ("literal", -100)), ())


def test_every_function_has_code_and_every_code_a_name() -> None:
    with LiveJob(WatchSpec(), []) as job:
        assert set(job.state.functions) == set(FIELD_FUNCTIONS)


def test_the_page_on_the_language_lists_the_general_functions() -> None:
    [listed] = re.findall(
        r"and the functions (`.*?)\. A field `returned", PAGE.read_text(), re.DOTALL
    )
    assert re.findall(r"`(\w+)`", listed) == [*GENERAL]


@pytest.mark.parametrize("name", ["float", "norm", "mean"])
def test_what_no_job_can_compute_is_refused(name: str) -> None:
    text = "edition 2026\n\nmodule checks\n\nevent made = call train.make {\n  size: float = %s(result)\n}\n"
    assert [each.code for each in load_text(text % name).diagnostics] == ["TS0114"]
    assert load_text(text % "abs").diagnostics == ()


class Values:
    """Keeps the field of each call."""

    def __init__(self) -> None:
        self.found: list[object] = []

    def begin(self, call, source) -> None:
        self.found.append(call.fields["swapped"])

    def end(self, call, source) -> None: ...
    def boundary(self, span, index, source) -> None: ...
    def finish(self, source) -> None: ...


@pytest.mark.parametrize("source", [SWAPPED, ("list", (SWAPPED,))])
def test_tokens_are_followed_for_each_field_that_is_computed_from_them(source) -> None:
    """Also where no other field reads them, and within an expression."""
    type_ = ("bool",) if source is SWAPPED else ("list", ("bool",))
    field = FieldSpec("swapped", ("optional", type_), source)
    spec = WatchSpec((EventSpec("loss", ("torch.nn.functional.cross_entropy",), (field,)),))
    tokens = torch.randint(32, (9, 4), generator=torch.Generator().manual_seed(0))
    table, head = nn.Embedding(32, 8), nn.Linear(8, 32)
    seen = Values()
    with LiveJob(spec, [seen]):
        logits = head(table(tokens[:-1]))
        F.cross_entropy(logits.reshape(-1, 32), tokens[1:].reshape(-1))
        F.cross_entropy(logits.transpose(0, 1).reshape(-1, 32), tokens[1:].reshape(-1))
    assert seen.found == ([False, True] if source is SWAPPED else [(False,), (True,)])

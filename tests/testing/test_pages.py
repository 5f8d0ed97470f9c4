"""The page of each code of testing: its bad example has the code, its good one does not."""

from __future__ import annotations

import re

import pytest

from tests.testing.specs import codes as codes_of
from tspec.explain import codes, explain

OWN = [code for code in codes() if "TS0600" <= code < "TS0650"]
FENCE = re.compile(r"```tspec (bad|good)\n(.*?)```", re.DOTALL)


def test_there_are_pages() -> None:
    assert len(OWN) >= 11


@pytest.mark.parametrize("code", OWN)
def test_the_examples_are_right(code: str) -> None:
    title, _, rest = explain(code).partition("\n")
    assert re.fullmatch(rf"# {code}: [a-z`].*[^.]", title)
    examples = dict(FENCE.findall(rest))
    assert set(examples) == {"bad", "good"}
    assert code in codes_of(examples["bad"])
    assert code not in codes_of(examples["good"])

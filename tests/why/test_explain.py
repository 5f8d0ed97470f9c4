"""Every shipped rule can be explained, and its words name what it reads."""

from __future__ import annotations

import pytest

from tspec.resolve import load
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Holds, Rule
from tspec.resolve.program.walk import walk
from tspec.resources import shipped
from tspec.why.explain import explain
from tspec.why.show_explained import as_plain, as_text, bytes_said
from tspec.why.words import sentences

LOADED = load([shipped("stdlib")])
assert LOADED.program is not None
PROGRAM = LOADED.program


@pytest.mark.parametrize("rule", PROGRAM.rules, ids=lambda rule: rule.qualified)
def test_a_shipped_rule(rule: Rule) -> None:
    found = explain(rule, PROGRAM)
    text = as_text(found)
    prose = text.split("\nCode\n")[0]
    assert [line for line in prose.splitlines() if len(line) > 80] == []
    assert found.code or found.no_code
    assert found.hooks
    assert as_plain(found)["rule"] == rule.qualified


@pytest.mark.parametrize("rule", PROGRAM.rules, ids=lambda rule: rule.qualified)
def test_the_words_name_what_is_read(rule: Rule) -> None:
    said = " ".join(sentences(rule))
    conditions = [] if rule.when is None else [rule.when]
    if isinstance(rule.expect, Holds):
        conditions.append(rule.expect.condition)
    for condition in conditions:
        for part in walk(condition):
            if isinstance(part, rules.Field | rules.Ambient):
                assert part.name in said
            elif isinstance(part, rules.Constant) and isinstance(part.value, float):
                assert f"{part.value:.9g}" in said or part.value > 1e300
    assert len(sentences(rule)) >= 2 and all(each.endswith(".") for each in sentences(rule))


def test_bytes_are_said_in_their_unit() -> None:
    assert [bytes_said(n) for n in (4, 24_600, 4_000_000, 5_200_000_000)] == [
        "4 B",
        "24.6 kB",
        "4 MB",
        "5.2 GB",
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "batches_do_not_repeat",
            "the size of dimension 0 of the first of the tensors of that fetch",
        ),
        ("held_out_data_stays_the_same", "the tensors of the first of calls of fetch"),
    ],
)
def test_items_are_said_by_their_place(name: str, said: str) -> None:
    [rule] = [each for each in PROGRAM.rules if each.name == name]
    assert said in " ".join(sentences(rule))

"""Each kind of expression has a meaning in each executor, or a reason why it needs none there.

A new kind of expression fails here until each executor has it or is listed with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest

from tspec.check.columnar import expressions as columnar
from tspec.check.interpret import expressions as interpret
from tspec.logic import encode
from tspec.resolve.program import rules, text
from tspec.targets import scalars
from tspec.why import words

KINDS = frozenset(get_args(rules.Expr))

EXECUTORS: Mapping[str, frozenset[type]] = {
    "reference interpreter": frozenset(interpret._MEANING),
    "recordings, in SQL": frozenset(columnar._MEANING),
    "hooks": frozenset(scalars._CODE),
    "z3": frozenset(encode._MEANING),
    "words of `tspec why`": frozenset({*words._NOUNS, *words._CLAUSES}),
    "text": frozenset(text._TEXTS),
}

IN_JOINT_DECISIONS = "`targets/joints.py` writes it as a statement for all members of a decision"
OF_THE_PAST = "a value of an earlier instance, of which the window says nothing: a free value"
OF_TENSORS = "z3 has no tensors: a feature of it is a free value"
OF_CALLS = "z3 has no recording: which calls or subjects there are is free"
IN_COLLECTIONS = "`_collection` says it, before the table is read"

LACKING: Mapping[str, Mapping[type, str]] = {
    "hooks": {rules.Previous: IN_JOINT_DECISIONS, rules.Transpose: IN_JOINT_DECISIONS},
    "z3": {
        rules.Previous: OF_THE_PAST,
        rules.First: OF_THE_PAST,
        rules.Cast: OF_TENSORS,
        rules.Difference: OF_TENSORS,
        rules.LastCall: OF_CALLS,
        rules.Subjects: OF_CALLS,
        rules.Restrict: OF_CALLS,
        rules.Calls: OF_CALLS,
        rules.ListDisplay: "`in` and `isinstance` look into a list; elsewhere it is a free value",
        rules.Transpose: "it takes values of other ranks, which are free",
    },
    "words of `tspec why`": {
        rules.Subjects: IN_COLLECTIONS,
        rules.Restrict: IN_COLLECTIONS,
        rules.Calls: IN_COLLECTIONS,
    },
    "text": {rules.Constant: "`text` writes it before the table is read"},
}
"""Executor -> what it lacks, and why."""


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_executor_lacks_only_what_is_listed(executor: str) -> None:
    lacks = {kind.__name__ for kind in KINDS - EXECUTORS[executor]}
    assert lacks == {kind.__name__ for kind in LACKING.get(executor, {})}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_executor_has_nothing_else(executor: str) -> None:
    assert EXECUTORS[executor] <= KINDS

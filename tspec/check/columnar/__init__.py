"""The columnar checker: rules decided over a whole trace by set-based queries, on an embedded DuckDB.

Each rule becomes one relation, a row for each instance on each rank, whose columns are what the rule
reads. `docs/design/checker.md` says how. The files, in the order in which data flows:

    facts.py        a trace as tables
    reads.py        one field of subjects or calls as a table
    relation.py     a query that grows columns
    scope.py        what the columns of an instance mean
    windows.py      when a rule is looked at
    instances.py    for which subjects, under which key
    groups.py, members.py    on which ranks
    expressions.py  what it reads and reckons; with calls.py, collections.py, state.py, tensors.py,
                    operators.py, folds.py, lookback.py
    claims.py       claims that are no expressions
    decide.py       verdicts
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tspec.check.columnar.decide import decide, rows_of
from tspec.check.columnar.expressions import inside
from tspec.check.columnar.facts import Facts, load
from tspec.check.columnar.shapes import Unsupported
from tspec.check.verdicts import Decided, Instance, Verdicts
from tspec.resolve import rules
from tspec.resolve.rules import Rule
from tspec.trace.model import Trace

FEATURES = {"zeros": ("zeros", "numel"), "mean": ("mean", "sum", "numel")}
"""The recorded features that a feature of a rule needs, where it is not that one alone."""


def check(rules: Sequence[Rule], trace: Path | str | Trace) -> Verdicts:
    """The verdict of every instance of the rules in a trace. Raises TraceError if it is none."""
    with load(trace, _features(rules)) as facts:
        decided: list[Decided] = []
        without: list[str] = []
        for rule in rules:
            found = list(_decided(rule, facts))
            decided += found
            if not found:
                without.append(rule.qualified)
    return Verdicts(tuple(decided), tuple(without), ())


def _features(wanted: Sequence[Rule]) -> set[str]:
    found = {"digest", "object"}
    for rule in wanted:
        for part in inside((rule.subjects, rule.window, rule.when, rule.expect, rule.across)):
            if isinstance(part, rules.Feature):
                found.update(FEATURES.get(part.name, (part.name,)))
    return found


def _decided(rule: Rule, facts: Facts) -> Iterator[Decided]:
    for row in sorted(rows_of(decide(rule, facts), facts), key=lambda row: (row[0], row[1])):
        at0, at1, ranks, step, _, verdict, reason, *names = row
        key = Instance(rule.qualified, tuple(ranks), (at0, at1), tuple(names))
        yield Decided(key, verdict, reason or "", {}, step)

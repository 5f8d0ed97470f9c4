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

from tspec.check.columnar.decide import Decisions, Failed, counts_of, decide, frame, rows_of
from tspec.check.columnar.expressions import inside
from tspec.check.columnar.facts import Facts, load
from tspec.check.columnar.notes import notes
from tspec.check.columnar.shown import shown
from tspec.check.verdicts import Count, Decided, Instance, Verdicts
from tspec.resolve import rules as language
from tspec.resolve.rules import Rule
from tspec.trace.model import Trace

_NEEDED = {"zeros": ("zeros", "numel"), "mean": ("mean", "sum", "numel")}
"""The recorded features that a feature of a rule needs, where it is not that one alone."""


def check(
    rules: Sequence[Rule],
    trace: Path | str | Trace,
    *,
    evidence: bool = True,
    findings_only: bool = False,
) -> Verdicts:
    """The verdict of every instance of the rules in a trace, by rule and then by instance.

    Without `evidence`, violated instances do not carry what the rule read. With `findings_only`, the
    instances of rules that nothing violates are counted and not listed.
    Rules that no query here says are decided by the reference interpreter, and the notes name them.
    Raises TraceError if there is no trace.
    """
    with load(trace, _features(rules)) as facts:
        found: dict[int, tuple[Decided, ...]] = {}
        failed: list[Failed] = []
        counted: list[Count] = []
        for each in _decide_all(rules, facts):
            if isinstance(each, Failed):
                failed.append(each)
                continue
            counts = counts_of(each, facts)
            if findings_only and not any(count.verdict == "violated" for count in counts):
                counted += counts
            elif counts:
                found[id(each.rule)] = tuple(_decided(each, facts, evidence))
        said = [f"{f.rule.qualified}: decided by the interpreter ({f.why})" for f in failed]
        said += notes(facts, trace)
    for rule, verdicts in _interpreted([f.rule for f in failed], trace):
        found[id(rule)] = verdicts
    decided = tuple(each for rule in rules for each in found.get(id(rule), ()))
    seen = {count.rule for count in counted}
    without = tuple(
        rule.qualified for rule in rules if not found.get(id(rule)) and rule.qualified not in seen
    )
    grouped = [(each.instance.rule, each.verdict, each.reason) for each in decided]
    grouped += [(count.rule, count.verdict, count.reason) for count in counted]
    idle = dict.fromkeys(
        f"{rule}: {reason}"
        for rule, verdict, reason in grouped
        if verdict == "idle" and reason.startswith("no group")
    )
    return Verdicts(decided, without, (*idle, *said), tuple(counted))


def _decide_all(rules: Sequence[Rule], facts: Facts) -> Iterator[Decisions | Failed]:
    """Rules of one frame are decided together, unless the engine stumbles over one of them."""
    import duckdb

    frames: dict[object, list[Rule]] = {}
    for rule in rules:
        frames.setdefault(frame(rule), []).append(rule)
    for together in frames.values():
        try:
            yield from decide(together, facts)
            continue
        except duckdb.Error as error:
            why = str(error).splitlines()[0]
        if len(together) == 1:
            yield Failed(together[0], why)
            continue
        for rule in together:
            facts.forget(rule.window)
            try:
                yield from decide([rule], facts)
            except duckdb.Error as error:
                yield Failed(rule, str(error).splitlines()[0])
            facts.forget(rule.window)


def _interpreted(
    rules: Sequence[Rule], trace: Path | str | Trace
) -> Iterator[tuple[Rule, tuple[Decided, ...]]]:
    if rules:
        from tspec.check.interpret import interpret
        from tspec.trace.read import read_trace

        whole = trace if isinstance(trace, Trace) else read_trace(trace)
        for rule in rules:
            yield rule, interpret([rule], whole).decided


def _features(wanted: Sequence[Rule]) -> set[str]:
    found = {"digest", "object"}
    for rule in wanted:
        for part in inside((rule.subjects, rule.window, rule.when, rule.expect, rule.across)):
            if isinstance(part, language.Feature):
                found.update(_NEEDED.get(part.name, (part.name,)))
    return found


def _decided(decisions: Decisions, facts: Facts, evidence: bool) -> Iterator[Decided]:
    name = decisions.rule.qualified
    rows = rows_of(decisions, facts)
    some = evidence and any(row[5] == "violated" for row in rows)
    values = shown(decisions, facts) if some else {}
    for at0, at1, ranks, step, row, verdict, reason, *names in rows:
        key = Instance(name, tuple(ranks), (at0, at1), tuple(names))
        read = values.get(row, {}) if verdict == "violated" else {}
        yield Decided(key, verdict, reason or "", read, step)

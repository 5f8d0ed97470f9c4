"""The columnar checker: rules decided over a whole trace by set-based queries, on an embedded
DuckDB.

Each rule becomes one relation, a row for each instance on each rank, with the values that the rule
reads as columns. `docs/design/checker.md` explains it. The files, in the order of data flow:

    facts.py        a trace as tables
    reads.py        one field of subjects or calls as a table
    relation.py     a query that grows columns
    scope.py        the meaning of an instance's columns
    windows.py      the windows of a rule
    instances.py    the subjects and keys of instances
    groups.py, members.py    the ranks of instances
    expressions.py  the values of expressions; with calls.py, collections.py, state.py, tensors.py,
                    operators.py, folds.py, lookback.py
    claims.py       claims that are no expressions
    decide.py, work.py       verdicts, of one frame of rules and of all
    truth.py        true or false in several traces, for inference
    shown.py, notes.py       the values and notes of a report
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tspec.check.columnar.facts import features_of, load
from tspec.check.columnar.work import CheckOptions, decide_all
from tspec.check.verdicts import Decision, Verdicts
from tspec.reasons import is_no_group
from tspec.resolve.program.rules import Rule
from tspec.trace.groups import groups
from tspec.trace.model import Trace
from tspec.trace.shards import shardings
from tspec.trace.subjects import places
from tspec.values import shard_in_words


def check(
    rules: Sequence[Rule],
    trace: Path | str | Trace,
    *,
    evidence: bool = True,
    findings_only: bool = False,
) -> Verdicts:
    """The verdict of every instance of the rules in a trace, by rule and then by instance.

    Without `evidence`, violated instances do not carry the values that the rule read. With
    `findings_only`, instances of rules without a violation are counted and not listed. Rules that
    no query can express are decided by the reference interpreter, and the notes name them. Raises
    TraceError if there is no trace.
    """
    recording = load(trace, features_of(rules))
    outcome = decide_all(rules, recording, CheckOptions(evidence, findings_only))
    left = [rule for rule in rules if id(rule) in outcome.failed]
    said = [
        f"{rule.qualified}: decided by the interpreter ({outcome.failed[id(rule)]})"
        for rule in left
    ]
    outcome.decided.update(_interpreted(left, trace))
    decided = tuple(each for rule in rules for each in outcome.decided.get(id(rule), ()))
    counted = tuple(each for rule in rules for each in outcome.counted.get(id(rule), ()))
    grouped = [(each.instance.rule, each.verdict, each.reason) for each in decided]
    grouped += [(count.rule, count.verdict, count.reason) for count in counted]
    idle = dict.fromkeys(
        f"{rule}: {reason}"
        for rule, verdict, reason in grouped
        if verdict == "idle" and is_no_group(reason)
    )
    cut = {
        name: shard_in_words(sharding.whole_shape, sharding.cuts)
        for name, sharding in (shardings(recording.rows) if evidence else {}).items()
    }
    return Verdicts(
        decided,
        (*idle, *said, *outcome.notes),
        counted,
        recording.ends_early,
        cut,
        groups(recording.rows) if evidence else {},
        places(recording.rows) if evidence else {},
    )


def _interpreted(
    rules: Sequence[Rule], trace: Path | str | Trace
) -> Iterator[tuple[int, tuple[Decision, ...]]]:
    if rules:
        from tspec.check.interpret import interpret
        from tspec.trace.read import read_trace

        whole = trace if isinstance(trace, Trace) else read_trace(trace)
        for rule in rules:
            yield id(rule), interpret([rule], whole).decided

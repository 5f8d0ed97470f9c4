"""The other executors on the traces of tests: where one decides differently, tspec itself is at fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tspec.check.verdicts import Decision, Instance
from tspec.resolve.program.rules import Ambient, Program, Rule
from tspec.resolve.program.scripts import Script
from tspec.resolve.program.walk import parts
from tspec.testing.run import TestRun
from tspec.trace.model import Trace


def disagreements(
    runs: Sequence[TestRun], program: Program, known: Mapping[str, Rule], hooks: bool
) -> list[str]:
    """Each instance that another executor decides differently from the reference interpreter.

    The columnar checker decides every trace; generated hooks, with `hooks`, the rules that have code.
    """
    played = [test_run for test_run in runs if test_run.trace is not None]
    found = [line for test_run, theirs in _columnar(played, known) for line in
             _differences(test_run, theirs, "the columnar checker")]  # fmt: skip
    for test_run in played if hooks else ():
        found += _by_hooks(test_run, [known[name] for name in test_run.decisions], program)
    return found


def _columnar(
    runs: Sequence[TestRun], known: Mapping[str, Rule]
) -> Iterator[tuple[TestRun, Iterable[Decision]]]:
    """The verdicts of the columnar checker for each test.

    A query costs nearly the same for one rank as for fifty. So tests with one rank, and with rules
    that do not read the rank, become ranks of one trace.
    """
    from tspec.check.columnar import check

    alone = [test_run for test_run in runs if _is_alone(test_run, known)]
    if alone:
        names = dict.fromkeys(name for test_run in alone for name in test_run.decisions)
        streams = tuple(
            replace(stream, rank=rank)
            for rank, test_run in enumerate(alone)
            for stream in (test_run.trace.streams if test_run.trace is not None else ())
        )
        whole = Trace(streams, len(alone))
        decided = check([known[name] for name in names], whole, evidence=False).decided
        by_rank: dict[int, list[Decision]] = {}
        for each in decided:
            by_rank.setdefault(each.instance.ranks[0], []).append(each)
        for rank, test_run in enumerate(alone):
            yield test_run, [_on_rank_0(e) for e in by_rank.get(rank, ()) if _is_of(e, test_run)]
    for test_run in runs:
        if test_run.trace is not None and not _is_alone(test_run, known):
            rules = [known[name] for name in test_run.decisions]
            yield test_run, check(rules, test_run.trace, evidence=False).decided


def _is_alone(test_run: TestRun, known: Mapping[str, Rule]) -> bool:
    """True if a test has one rank, and no verdict depends on that rank's number."""
    events = test_run.test.events
    if not isinstance(events, Script) or events.ranks != 1:
        return False
    rules = [known[name] for name in test_run.decisions]
    return not any(rule.across for rule in rules) and not any(
        isinstance(part, Ambient) and part.name == "rank" for rule in rules for part in parts(rule)
    )


def _on_rank_0(each: Decision) -> Decision:
    return replace(each, instance=replace(each.instance, ranks=(0,)))


def _is_of(each: Decision, test_run: TestRun) -> bool:
    return each.instance.rule in test_run.decisions


def _by_hooks(test_run: TestRun, rules: Sequence[Rule], program: Program) -> list[str]:
    from tspec.check.replayed import check as replayed
    from tspec.targets.compile import CannotCompile

    assert test_run.trace is not None
    try:
        theirs = replayed(rules, test_run.trace, program.vocabulary).decided
    except CannotCompile:
        return []  # a rule that has no code is decided offline only
    return _differences(test_run, theirs, "generated hooks")


def _differences(test_run: TestRun, theirs: Iterable[Decision], whose: str) -> list[str]:
    ours = _verdicts(each for found in test_run.decisions.values() for _, each in found)
    other = _verdicts(theirs)
    return [
        f'test "{test_run.test.title}", {key.rule} at step {key.at[0]} on rank '
        f"{', '.join(map(str, key.ranks))}{_of(key)}: the interpreter says "
        f"{ours.get(key, 'nothing')}, {whose} {other.get(key, 'nothing')}"
        for key in sorted({*ours, *other})
        if ours.get(key) != other.get(key)
    ]


def _verdicts(decided: Iterable[Decision]) -> dict[Instance, str]:
    return {each.instance: each.verdict for each in decided}


def _of(key: Instance) -> str:
    return f" of {', '.join(key.subjects)}" if key.subjects else ""

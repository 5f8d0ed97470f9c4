"""The other executors on the traces of tests: where one decides differently, tspec itself is at fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tspec.check.verdicts import Decided, Instance
from tspec.resolve.program.rules import Ambient, Program, Rule
from tspec.resolve.program.scripts import Script
from tspec.resolve.program.walk import parts
from tspec.testing.run import Ran
from tspec.trace.model import Trace


def disagreements(
    runs: Sequence[Ran], program: Program, known: Mapping[str, Rule], hooks: bool
) -> list[str]:
    """Each instance that another executor decides differently from the reference interpreter.

    The columnar checker decides every trace; generated hooks, with `hooks`, the rules that have code.
    """
    played = [ran for ran in runs if ran.trace is not None]
    found = [line for ran, theirs in _columnar(played, known) for line in
             _differences(ran, theirs, "the columnar checker")]  # fmt: skip
    for ran in played if hooks else ():
        found += _by_hooks(ran, [known[name] for name in ran.decisions], program)
    return found


def _columnar(
    runs: Sequence[Ran], known: Mapping[str, Rule]
) -> Iterator[tuple[Ran, Iterable[Decided]]]:
    """What the columnar checker decides of each test.

    A query costs much the same for one rank as for fifty. So tests of one rank, of rules that look at no
    other, are ranks of one trace.
    """
    from tspec.check.columnar import check

    alone = [ran for ran in runs if _is_alone(ran, known)]
    if alone:
        names = dict.fromkeys(name for ran in alone for name in ran.decisions)
        streams = tuple(
            replace(stream, rank=rank)
            for rank, ran in enumerate(alone)
            for stream in (ran.trace.streams if ran.trace is not None else ())
        )
        whole = Trace(streams, len(alone))
        decided = check([known[name] for name in names], whole, evidence=False).decided
        by_rank: dict[int, list[Decided]] = {}
        for each in decided:
            by_rank.setdefault(each.instance.ranks[0], []).append(each)
        for rank, ran in enumerate(alone):
            yield ran, [_on_rank_0(e) for e in by_rank.get(rank, ()) if _is_of(e, ran)]
    for ran in runs:
        if ran.trace is not None and not _is_alone(ran, known):
            rules = [known[name] for name in ran.decisions]
            yield ran, check(rules, ran.trace, evidence=False).decided


def _is_alone(ran: Ran, known: Mapping[str, Rule]) -> bool:
    """One rank, and rules of which no verdict depends on which rank it is."""
    events = ran.test.events
    if not isinstance(events, Script) or events.ranks != 1:
        return False
    rules = [known[name] for name in ran.decisions]
    return not any(rule.across for rule in rules) and not any(
        isinstance(part, Ambient) and part.name == "rank" for rule in rules for part in parts(rule)
    )


def _on_rank_0(each: Decided) -> Decided:
    return replace(each, instance=replace(each.instance, ranks=(0,)))


def _is_of(each: Decided, ran: Ran) -> bool:
    return each.instance.rule in ran.decisions


def _by_hooks(ran: Ran, rules: Sequence[Rule], program: Program) -> list[str]:
    from tspec.check.replayed import check as replayed
    from tspec.targets.compile import CannotCompile

    assert ran.trace is not None
    try:
        theirs = replayed(rules, ran.trace, program.vocabulary).decided
    except CannotCompile:
        return []  # a rule that has no code is decided offline only
    return _differences(ran, theirs, "generated hooks")


def _differences(ran: Ran, theirs: Iterable[Decided], whose: str) -> list[str]:
    ours = _verdicts(each for found in ran.decisions.values() for _, each in found)
    other = _verdicts(theirs)
    return [
        f'test "{ran.test.title}", {key.rule} at step {key.at[0]} on rank '
        f"{', '.join(map(str, key.ranks))}{_of(key)}: the interpreter says "
        f"{ours.get(key, 'nothing')}, {whose} {other.get(key, 'nothing')}"
        for key in sorted({*ours, *other})
        if ours.get(key) != other.get(key)
    ]


def _verdicts(decided: Iterable[Decided]) -> dict[Instance, str]:
    return {each.instance: each.verdict for each in decided}


def _of(key: Instance) -> str:
    return f" of {', '.join(key.subjects)}" if key.subjects else ""

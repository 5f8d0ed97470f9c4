"""Why a rule fired in a recording, or not: counts, instances that fired, the nearest others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.check.interpret import decide_rule, job_of
from tspec.check.verdicts import Decision
from tspec.reasons import VERDICTS, Verdict
from tspec.resolve.program.rules import Holds, Rule
from tspec.trace.model import Ending, Trace
from tspec.why.look import InspectedInstance, look
from tspec.why.recording import events_of, kinds_of, part_for

MOST = 1000
"""The number of fired instances whose values are read."""


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """Selects instances. None: all."""

    step: int | None = None
    rank: int | None = None
    subject: str | None = None

    def has(self, decided: Decision) -> bool:
        """The instance is one of them."""
        key = decided.instance
        return (
            (self.step is None or decided.step == self.step)
            and (self.rank is None or self.rank in key.ranks)
            and (self.subject is None or self.subject in key.subjects)
        )


@dataclass(frozen=True, slots=True)
class BlockingCondition:
    """A condition that stopped instances, and their number."""

    clause: str
    condition: str
    verdict: Verdict
    reason: str
    instances: int


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """The answer of `tspec why`.

    `asked` is the number of selected instances, `total` that of all instances of the rule. `fired`
    are in order, `nearest` with the nearest first, without instances that have no distance. `stopped` are the conditions that stopped the
    others, most frequent first. `missing`: data that the recording lacks, if there is no instance.
    """

    rule: Rule
    counts: Mapping[Verdict, int]
    total: int
    fired: tuple[InspectedInstance, ...]
    nearest: tuple[InspectedInstance, ...]
    stopped: tuple[BlockingCondition, ...]
    missing: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    """The ranks whose recording ends early, and why."""


def why(rule: Rule, folder: Path, where: InstanceFilter, shown: int = 3) -> WhyAnswer:
    """Look at a rule's instances in a recording. Raises TraceError."""
    trace = part_for(rule, folder)
    found = decide_rule(rule, job_of(trace))
    asked = [pair for pair in found if where.has(pair[1])]
    number = Counter(decided.verdict for _, decided in asked)
    counts = {verdict: number[verdict] for verdict in VERDICTS}
    rough = [(look(rule, grouped, each, values=False), grouped) for grouped, each in asked]
    others = [pair for pair in rough if pair[0].decided.verdict != "violated"]
    others.sort(key=lambda pair: pair[0].nearness())
    fired = tuple(
        look(rule, grouped, each, values=place < MOST)
        for place, (grouped, each) in enumerate(p for p in asked if p[1].verdict == "violated")
    )
    # A claim on calls is met or not: no instance that it decided is nearer than another.
    ranked = [
        pair for pair in others if isinstance(rule.expect, Holds) or pair[0].clause != "expect"
    ]
    nearest = tuple(look(rule, grouped, each.decided) for each, grouped in ranked[:shown])
    stopped = tuple(_stopped([each for each, _ in others]))
    missing = tuple(_missing(rule, trace)) if not found else ()
    damaged = tuple(
        f"the recording of rank {stream.rank} {_early(stream.ending)}"
        for stream in trace.streams
        if stream.ending is not None and stream.ending.how not in ("finished", "stopped")
    )
    return WhyAnswer(rule, counts, len(found), fired, nearest, stopped, missing, damaged)


def _early(ending: Ending) -> str:
    if ending.damage is not None:
        return f"is {ending.words}"
    return f"does not reach the end of the run ({ending.words})"


def _stopped(looks: Sequence[InspectedInstance]) -> Iterator[BlockingCondition]:
    """The conditions by the number of instances that they stopped."""
    found = Counter(
        (each.clause, each.condition, each.decided.verdict, each.decided.reason)
        for each in looks
        if each.decided.verdict in ("idle", "unknown")
    )
    for (clause, condition, verdict, reason), number in sorted(
        found.items(), key=lambda pair: (-pair[1], pair[0])
    ):
        yield BlockingCondition(clause, condition, verdict, reason, number)


def _missing(rule: Rule, trace: Trace) -> Iterator[str]:
    """The events and subjects that a rule without instances needs and the recording lacks."""
    from tspec.trace.model import Begin, Sample

    records = [record for stream in trace.streams for record in stream.records]
    called = {record.event for record in records if isinstance(record, Begin)}
    sampled = {record.kind for record in records if isinstance(record, Sample)}
    window = rule.window.event
    if window is not None and not called & set(window.events):
        yield f"no call of {' or '.join(window.events)} was recorded"
    for event in sorted(events_of(rule) - called - set(window.events if window else ())):
        yield f"no call of {event} was recorded"
    for kind in sorted(kinds_of(rule) - sampled - {"context", "group"}):
        yield f"no {kind} was recorded"

"""A situation in which two rules decide differently, shown by running the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from tspec.check.evidence import show
from tspec.check.interpret.decide import decide
from tspec.check.interpret.expressions import evaluate
from tspec.check.interpret.frames import Frame, Grouped
from tspec.check.interpret.instances import Job, instances
from tspec.check.interpret.timeline import Call, Timeline
from tspec.diff.casting import Casting
from tspec.diff.scene import MOST_WINDOWS, earlier_windows, trace_of
from tspec.diff.stage import CannotStage, Stage
from tspec.diff.standing_in import standing_in
from tspec.logic.values import Thing
from tspec.logic.violations import Pair, Read, Side, Situation
from tspec.resolve import rules, types
from tspec.resolve.rules import Rule
from tspec.resolve.text import text
from tspec.resolve.type_names import plain
from tspec.resolve.walk import walk
from tspec.trace.model import Missing, Ref, Trace


@dataclass(frozen=True, slots=True)
class Witness:
    """One situation: what is read in it, and what the two rules say of it.

    `given`: reads that were taken as given, since no small job was found that has them.
    """

    values: tuple[tuple[str, str], ...]
    old: str
    new: str
    confirmed: bool
    given: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """`step = 3, loss = 7.0: old holds, new violated`."""
        shown = ", ".join(f"{name} = {value}" for name, value in self.values) or "always"
        line = f"{shown}: old {self.old}, new {self.new}"
        return line if self.confirmed else f"{line} (not confirmed)"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the interpreter made of a scene."""

    witness: Witness
    frames: tuple[Frame, ...]


def play(pair: Pair, side: Side, situation: Situation) -> Seen | None:
    """Stage a situation and let the interpreter decide both rules; None where it cannot be staged."""
    old, new = pair.rules["old"], pair.rules["new"]
    staged = _staged(pair, side, situation)
    if staged is None:
        return None
    (old, new), trace, given = staged
    found = _told_apart(old, new, trace, side, pair.comparable)
    if found is None:
        return None
    frames, said_old, said_new = found
    confirmed = (said_old if side == "old" else said_new) == "violated"
    other = said_new if side == "old" else said_old
    confirmed = confirmed and other != "violated" and _independent(given, situation)
    as_put = len({rule.window.kind for rule in pair.rules.values()}) > 1
    names = tuple(dict.fromkeys(text(each.expr) for each in given))
    values = _values(situation, frames, as_put, names)
    witness = Witness(values, said_old, said_new, confirmed, names)
    return Seen(witness, frames)


def _independent(taken: Sequence[Read], situation: Situation) -> bool:
    """Whether what is taken as given is read from nothing that is read besides."""
    below = [
        {part for part in walk(read.expr) if isinstance(part, rules.Ambient | rules.Field)}
        for read in situation.reads
        if read not in taken and not isinstance(situation.reads[read], Thing)
    ]
    return not any(
        part in other
        for read in taken
        for part in walk(read.expr)
        for other in below
        if not isinstance(part, rules.Variable)
    )


def _staged(
    pair: Pair, side: Side, situation: Situation
) -> tuple[tuple[Rule, Rule], Trace, Sequence[Read]] | None:
    old, new = pair.rules["old"], pair.rules["new"]
    both = (old, new)
    taken: list[Read] = []
    for _ in range(2):
        stage, counts = _stage(pair, side)
        try:
            casting = Casting(stage, situation, counts)
            left = [read for read in casting.put_all() if read not in taken]
        except CannotStage:
            return None
        if not left:
            kinds = {rule.window.kind for rule in pair.rules.values()}
            instant = kinds == {"before"}
            for read in taken:
                casting.stand_in(read)
            return both, trace_of(stage, situation.returns, instant), taken
        taken += left
        both = tuple(standing_in(rule, taken) for rule in both)  # type: ignore[assignment]
    return None


def _stage(pair: Pair, side: Side) -> tuple[Stage, Mapping[Side | None, int]]:
    """An empty stage, with as many windows before as the rules look back to."""
    other: Side = "new" if side == "old" else "old"
    own = pair.rules[side]
    earlier = earlier_windows((pair.rules["old"], pair.rules["new"]))
    counts: dict[Side | None, int] = {}
    strides = {
        each: rule.window.every.count if rule.window.every is not None else 1
        for each, rule in pair.rules.items()
    }
    stride = gcd(*strides.values()) if pair.comparable else strides[side]
    if earlier and pair.comparable:
        counts.update({each: count // stride for each, count in strides.items()})
        earlier *= max(count for count in counts.values())
    if pair.rules[other].window.once and not own.window.once:
        earlier = max(earlier, strides[side] // stride)
    if own.window.span == "run":
        earlier = 0
    return Stage(own, pair.vocabulary, pair.members, min(earlier, 2 * MOST_WINDOWS), stride), counts


def _told_apart(
    old: Rule, new: Rule, trace: Trace, side: Side, comparable: bool
) -> tuple[tuple[Frame, ...], str, str] | None:
    """The last instance that this side's rule calls violated, with what both say; else its last one."""
    found = {"old": _instances(old, trace), "new": _instances(new, trace)}
    own = found[side]
    other = found["new" if side == "old" else "old"]
    rule = {"old": old, "new": new}[side]
    other_rule = {"old": new, "new": old}[side]
    best: tuple[tuple[Frame, ...], str, str] | None = None
    for instance in own:
        said = _said(rule, instance)
        there = _matching(instance, other) if comparable else None
        if comparable:
            beside = "not looked at" if there is None else _said(other_rule, there)
        else:
            said_of_all = [_said(other_rule, each) for each in other]
            beside = (
                "violated" if "violated" in said_of_all else (said_of_all or ["not looked at"])[-1]
            )
        frames = tuple(Frame(local, instance) for _, local in sorted(instance.locals.items()))
        entry = (frames, said, beside) if side == "old" else (frames, beside, said)
        if best is None or (said == "violated" and beside != "violated"):
            best = entry
    return best


def _instances(rule: Rule, trace: Trace) -> list[Grouped]:
    lines = {s.rank: Timeline(s) for s in trace.streams if s.records}
    return instances(rule, Job(lines, trace.world))


def _matching(instance: Grouped, among: Sequence[Grouped]) -> Grouped | None:
    key = (instance.key.ranks, instance.key.at, instance.key.subjects)
    for each in among:
        if (each.key.ranks, each.key.at, each.key.subjects) == key:
            return each
    return None


def _said(rule: Rule, instance: Grouped) -> str:
    found = decide(rule, instance)
    if found.verdict in ("unknown", "violated") and found.reason:
        return found.verdict if found.verdict == "violated" else f"unknown ({found.reason})"
    return found.verdict


# --- what is shown ------------------------------------------------------------------------------


def unstaged(situation: Situation, side: Side) -> Witness:
    """What z3 finds possible, of which no job was found."""
    values = {
        _name(read): _plain(read.expr, value)
        for read, value in situation.reads.items()
        if _is_shown(read, situation) and read.member == 0
    }
    said: tuple[str, str] = ("violated", "not violated")
    old, new = said if side == "old" else said[::-1]
    return Witness(_step_first(values), old, new, confirmed=False)


def _values(
    situation: Situation, frames: Sequence[Frame], as_put: bool, given: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """What the interpreter read, by name; `as_put`: what was put, of reads in two windows."""
    found: dict[str, str] = {}
    for read, value in situation.reads.items():
        if not _is_shown(read, situation) or _name(read) in found:
            continue
        if as_put or text(read.expr) in given:
            found[_name(read)] = _plain(read.expr, value)
            continue
        shown = [
            _plain(read.expr, evaluate(read.expr, replace(frame, start=read.start)))
            for frame in frames
        ]
        found[_name(read)] = shown[0]
        if len(set(shown)) > 1:
            ranks = [frame.local.line.rank for frame in frames]
            each = [f"{one} (rank {rank})" for rank, one in zip(ranks, shown, strict=True)]
            found[_name(read)] = ", ".join(each)
    if not situation.returns:
        found["the window"] = "cut off"
    return _step_first(found)


def _step_first(values: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(values.items(), key=lambda item: item[0] not in ("step", "epoch")))


def _is_shown(read: Read, situation: Situation) -> bool:
    """Subjects are shown by what is read of them."""
    if isinstance(read.expr, rules.Variable | rules.WindowCall):
        return False
    subject = isinstance(situation.reads[read], Thing)
    return not (
        subject and any(read.expr in walk(other.expr) for other in situation.reads if other != read)
    )


def _name(read: Read) -> str:
    return f"old({text(read.expr)})" if read.start else text(read.expr)


def _plain(expr: rules.Expr, value: object) -> str:
    match value:
        case Missing():
            return value.value
        case Ref():
            return value.name
        case Thing():
            return f"#{value.number}"
        case Call():
            return value.begin.event
        case float():
            return repr(value)
        case str() if plain(expr.type) == types.STRING:
            return f'"{value}"'
    return show(value)

"""A situation in which two rules decide differently, confirmed by running the reference
interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from tspec.check.interpret.decide import decide
from tspec.check.interpret.expressions import evaluate
from tspec.check.interpret.frames import EvaluationContext, GroupInstance
from tspec.check.interpret.instances import RecordedJob, instances
from tspec.check.interpret.timeline import Timeline, TimelineCall
from tspec.diff.witness.construction import Construction
from tspec.diff.witness.job import CannotConstruct, SyntheticJob
from tspec.diff.witness.placeholders import with_placeholders
from tspec.diff.witness.trace import MOST_WINDOWS, earlier_windows, trace_of
from tspec.logic.situations import Side, Situation, SituationRead
from tspec.logic.tensor_facts import are_possible, feature_of_tensor, is_in_range
from tspec.logic.values import OpaqueValue, SubjectIdentity
from tspec.logic.violations import RulePair
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Rule
from tspec.resolve.program.text import claim_text, text
from tspec.resolve.program.types import plain
from tspec.resolve.program.walk import walk
from tspec.trace.model import Missing, Ref, Tensor, Trace
from tspec.values import show


@dataclass(frozen=True, slots=True)
class Witness:
    """The values that are read in one situation, and the verdicts of the two rules.

    `given`: reads that a placeholder replaced, because no small job was found that has them.
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
class Attempt:
    """The interpreter's decisions on a synthetic job."""

    witness: Witness
    frames: tuple[EvaluationContext, ...]
    last: bool
    """The rules differ in the last window, for which the job was made."""


def attempt(
    pair: RulePair, side: Side, situation: Situation, *, anywhere: bool = False
) -> Attempt | None:
    """Decide both rules on a job with this situation; None if no job has it, or none can be constructed."""
    if not _is_possible(situation):
        return None
    old, new = pair.rules["old"], pair.rules["new"]
    constructed = _constructed(pair, side, situation)
    if constructed is None:
        return None
    (old, new), trace, given = constructed
    found = _difference(pair, (old, new), trace, side, anywhere)
    if found is None:
        return None
    other: Side = "new" if side == "old" else "old"
    confirmed = found.said[side] == "violated" and found.said[other] != "violated"
    confirmed = confirmed and _independent(given, situation)
    names = tuple(dict.fromkeys(text(each.expr) for each in given))
    values = _values(pair, situation, found.frames, side, names)
    witness = Witness(values, found.said["old"], found.said["new"], confirmed, names)
    return Attempt(witness, found.frames[side], found.last)


def _is_possible(situation: Situation) -> bool:
    """True if tensors can have the features that are read, as far as `tensor_facts` tells."""
    tensors: dict[object, dict[str, float | bool]] = {}
    for read, value in situation.reads.items():
        if not isinstance(value, bool | int | float):
            continue
        if not is_in_range(read.expr, value):
            return False
        feature = feature_of_tensor(read.expr)
        if feature is not None:
            tensor, name = feature
            tensors.setdefault((tensor, read.start, read.member, read.side), {})[name] = value
    return all(are_possible(features) for features in tensors.values())


def _independent(taken: Sequence[SituationRead], situation: Situation) -> bool:
    """True if no other read shares an operand with the reads that placeholders replaced."""
    below = [
        {part for part in walk(read.expr) if isinstance(part, rules.Ambient | rules.Field)}
        for read in situation.reads
        if read not in taken
        and not isinstance(situation.reads[read], SubjectIdentity | OpaqueValue)
    ]
    return not any(
        part in other
        for read in taken
        for part in walk(read.expr)
        for other in below
        if not isinstance(part, rules.Variable)
    )


def _constructed(
    pair: RulePair, side: Side, situation: Situation
) -> tuple[tuple[Rule, Rule], Trace, Sequence[SituationRead]] | None:
    old, new = pair.rules["old"], pair.rules["new"]
    both = (old, new)
    taken: list[SituationRead] = []
    for _ in range(2):
        job, counts = _empty_job(pair, side)
        try:
            construction = Construction(job, situation, counts)
            left = [read for read in construction.put_all() if read not in taken]
        except CannotConstruct:
            return None
        if not left:
            kinds = {rule.window.kind for rule in pair.rules.values()}
            instant = kinds == {"before"}
            for read in taken:
                construction.put_placeholder(read)
            return both, trace_of(job, situation.returns, instant), taken
        taken += left
        both = tuple(with_placeholders(rule, taken) for rule in both)  # type: ignore[assignment]
    return None


def _empty_job(pair: RulePair, side: Side) -> tuple[SyntheticJob, Mapping[Side | None, int]]:
    """An empty job with the earlier windows that the rules read, and the `counts` of Construction."""
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
    return SyntheticJob(
        own, pair.vocabulary, pair.members, min(earlier, 2 * MOST_WINDOWS), stride
    ), counts


@dataclass(frozen=True, slots=True)
class _Difference:
    """The verdicts of both rules on one instance, and the frames in which each was decided."""

    frames: Mapping[Side, tuple[EvaluationContext, ...]]
    said: Mapping[Side, str]
    last: bool
    """True for the last instance, for which the job was made."""


def _difference(
    pair: RulePair, both: tuple[Rule, Rule], trace: Trace, side: Side, anywhere: bool
) -> _Difference | None:
    """The last instance that only this side's rule calls violated, or else its last instance.

    `anywhere`: consider earlier instances too, which have a shorter history.
    """
    other: Side = "new" if side == "old" else "old"
    rules_ = {"old": both[0], "new": both[1]}
    found = {each: _instances(rule, trace) for each, rule in rules_.items()}
    best: _Difference | None = None
    told = False
    last = max((instance.key.at for instance in found[side]), default=(0, 0))
    for instance in found[side]:
        if not anywhere and instance.key.at != last:
            continue
        said = _verdict(rules_[side], instance)
        there: GroupInstance | None = None
        if pair.comparable:
            there = _matching(instance, found[other])
            beside = "not looked at" if there is None else _verdict(rules_[other], there)
        elif pair.other_windows:
            beside = "looks at other windows"
        else:
            of_all = [_verdict(rules_[other], each) for each in found[other]]
            beside = "violated" if "violated" in of_all else (of_all or ["not looked at"])[-1]
        apart = said == "violated" != beside
        if apart or not told:
            told = told or apart
            frames = {side: _frames(instance), other: () if there is None else _frames(there)}
            best = _Difference(frames, {side: said, other: beside}, instance.key.at == last)
    return best


def _frames(instance: GroupInstance) -> tuple[EvaluationContext, ...]:
    return tuple(EvaluationContext(local, instance) for _, local in sorted(instance.locals.items()))


def _instances(rule: Rule, trace: Trace) -> list[GroupInstance]:
    lines = {s.rank: Timeline(s) for s in trace.streams if s.records}
    return instances(rule, RecordedJob(lines, trace.world))


def _matching(instance: GroupInstance, among: Sequence[GroupInstance]) -> GroupInstance | None:
    key = (instance.key.ranks, instance.key.at, instance.key.subjects)
    for each in among:
        if (each.key.ranks, each.key.at, each.key.subjects) == key:
            return each
    return None


def _verdict(rule: Rule, instance: GroupInstance) -> str:
    found = decide(rule, instance)
    if found.verdict in ("unknown", "violated") and found.reason:
        return found.verdict if found.verdict == "violated" else f"unknown ({found.reason})"
    return found.verdict


# --- shown values -------------------------------------------------------------------------------


def unconfirmed(situation: Situation, side: Side) -> Witness:
    """A situation that z3 finds possible and that no job was found for."""
    values = {
        _name(read): _plain(read.expr, value)
        for read, value in situation.reads.items()
        if _is_shown(read, situation) and read.member == 0
    }
    said: tuple[str, str] = ("violated", "not violated")
    old, new = said if side == "old" else said[::-1]
    return Witness(_step_first(values), old, new, confirmed=False)


def _values(
    pair: RulePair,
    situation: Situation,
    frames: Mapping[Side, Sequence[EvaluationContext]],
    side: Side,
    given: Sequence[str],
) -> tuple[tuple[str, str], ...]:
    """The values that the interpreter read, by text. Where the rules' windows differ in kind: the situation's."""
    as_put = len({rule.window.kind for rule in pair.rules.values()}) > 1
    found: dict[str, str] = {}
    beside: dict[str, str] = {}
    other: Side = "new" if side == "old" else "old"
    for read, value in situation.reads.items():
        into = beside if read.side == other else found
        if not _is_shown(read, situation) or _name(read) in into:
            continue
        of_begin = read.start and pair.rules[side].window.kind == "after"
        if as_put or of_begin or text(read.expr) in given:
            into[_name(read)] = _plain(read.expr, value)
        elif frames[read.side or side]:
            into[_name(read)] = _read(read, frames[read.side or side])
    for name, value in beside.items():
        if name not in found:
            found[name] = value
        elif found[name] != value:
            found[name] = f"{found[name]} ({side}), {value} ({other})"
    for claim, met in situation.claims.items():
        found[claim_text(claim)] = {True: "met", False: "broken", None: "idle"}[met]
    began = found.pop("old(step)", None)
    if began is not None and found.setdefault("step", began) != began:
        found["old(step)"] = began
    cut = [str(member) for member, ends in enumerate(situation.returns) if not ends]
    if cut:
        where = f" on rank {', '.join(cut)}" if len(situation.returns) > 1 else ""
        found["the window"] = f"cut off{where}"
    return _step_first(found)


def _read(read: SituationRead, frames: Sequence[EvaluationContext]) -> str:
    """The value that was read, or one for each rank if they differ."""
    shown = [
        _plain(read.expr, evaluate(read.expr, replace(frame, start=read.start))) for frame in frames
    ]
    if len(set(shown)) == 1:
        return shown[0]
    ranks = [frame.local.line.rank for frame in frames]
    return ", ".join(f"{one} (rank {rank})" for rank, one in zip(ranks, shown, strict=True))


def _step_first(values: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(values.items(), key=lambda item: item[0] not in ("step", "epoch")))


def _is_shown(read: SituationRead, situation: Situation) -> bool:
    """True if a read is shown. A subject is left out if a field of it is read."""
    if isinstance(read.expr, rules.Variable | rules.WindowCall):
        return False
    subject = isinstance(situation.reads[read], SubjectIdentity | OpaqueValue)
    return not (
        subject and any(read.expr in walk(other.expr) for other in situation.reads if other != read)
    )


def _name(read: SituationRead) -> str:
    return f"old({text(read.expr)})" if read.start else text(read.expr)


def _plain(expr: rules.Expr, value: object) -> str:
    match value:
        case Missing():
            return value.value
        case Ref():
            return value.name
        case Tensor() | OpaqueValue():
            return "present"
        case SubjectIdentity():
            return f"{plain(expr.type)} {value.number}"
        case TimelineCall():
            return value.begin.event
        case float():
            return repr(value)
        case str() if plain(expr.type) == types.STRING:
            return f'"{value}"'
    return show(value)

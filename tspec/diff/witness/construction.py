"""From a situation of z3 to a synthetic job: a value for every read, and operands for every fold.

A read that cannot be put is returned, so that a placeholder can stand for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from tspec.builtin.folds import FOLDS
from tspec.builtin.functions import FUNCTIONS
from tspec.diff.witness.job import CannotConstruct, PartialTensor, SyntheticJob, Value, WindowEdge
from tspec.diff.witness.placeholders import placeholder
from tspec.logic.situations import Known, Side, Situation, SituationRead
from tspec.logic.sorts import known_number
from tspec.logic.values import OpaqueValue, SubjectIdentity
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Claim, Expr, Fold
from tspec.resolve.program.types import CallOf, Entity, Enum, Type, plain
from tspec.trace.model import Missing, Ref


class Construction:
    """Fills a synthetic job with the values of a situation."""

    def __init__(
        self, job: SyntheticJob, situation: Situation, counts: Mapping[Side | None, int]
    ) -> None:
        """`counts`: the windows of the job from one window of a side's rule to its next."""
        self.job = job
        self.counts = counts
        self._side: Side | None = None
        self.situation = situation
        self._done: dict[tuple[Expr, WindowEdge], Any] = {}

    def put_all(self) -> list[SituationRead]:
        """Put every read and claim. Returns the reads that cannot be put."""
        reads = self.situation.reads
        things = {r: v for r, v in reads.items() if isinstance(v, SubjectIdentity)}
        self._put_things(things)
        left: list[SituationRead] = []
        later = []
        for read, value in reads.items():
            if value is OpaqueValue.SOMETHING:
                self._put_something(read)
        for read, value in reads.items():
            if value is OpaqueValue.SOMETHING:
                continue
            if isinstance(value, SubjectIdentity) or isinstance(
                read.expr, rules.Variable | rules.WindowCall
            ):
                continue
            if _is_worked_out(read.expr):
                continue
            if isinstance(_bare(read.expr), Fold):
                later.append((read, value))
                continue
            left += [] if self._try(read, value) else [read]
        # Folds over fewer values come first. A fold over more values contains them and has to fill
        # the rest.
        for read, value in sorted(later, key=lambda each: _length(each[0].expr)):
            left += [] if self._try(read, value) else [read]
        # Violated claims come first: the last call of a violated order must have no call before it.
        for claim, met in sorted(self.situation.claims.items(), key=lambda each: each[1] is True):
            for rank in range(self.job.members):
                self._claim(claim, met, WindowEdge(rank))
        return left

    def put_placeholder(self, read: SituationRead) -> None:
        """Give the placeholder of a read its value."""
        value = self.situation.reads[read]
        if isinstance(value, SubjectIdentity):
            return
        at = WindowEdge(read.member, 0, read.start)
        self.job.context.setdefault(at, {})[placeholder(read.expr)] = value

    def _try(self, read: SituationRead, value: Known) -> bool:
        at = WindowEdge(read.member, 0, read.start)
        self._side = read.side
        try:
            self._put(read.expr, value, at)
        except CannotConstruct:
            return False
        return True

    @property
    def _step(self) -> int:
        """Windows of the job from one window of the current side's rule to its next."""
        return self.counts.get(self._side, 1)

    def _put_things(self, things: dict[SituationRead, SubjectIdentity]) -> None:
        """Put subjects into fields of others; equal things become one subject."""
        refs: dict[tuple[str, SubjectIdentity], Ref] = {}
        for read, thing in things.items():
            if isinstance(read.expr, rules.Variable):
                bound = self.job.bound.get(read.expr.name)
                if isinstance(bound, Ref):
                    refs[bound.kind, thing] = bound
        for read, thing in things.items():
            kind = plain(read.expr.type)
            if isinstance(read.expr, rules.Variable) or not isinstance(kind, Entity):
                continue
            key = (kind.kind, thing)
            if key not in refs:
                refs[key] = self.job.new_subject(kind.kind, f"{kind.kind}{thing.number}")
            try:
                self._put(read.expr, refs[key], WindowEdge(read.member, 0, read.start))
            except CannotConstruct:
                continue

    def _put_something(self, read: SituationRead) -> None:
        """Create a tensor whose features are put later. Elements of lists are created where they are read."""
        self._side = read.side
        inner, where = _moved(
            read.expr, WindowEdge(read.member, 0, read.start), self.job.earlier, self._step
        )
        if not isinstance(inner, rules.Field) or isinstance(plain(inner.base.type), types.ListOf):
            return
        try:
            if plain(inner.type) == types.TENSOR:
                self.job.tensor(inner, where)
            elif plain(inner.type) == types.SCALAR:
                self.job.put(inner, 1, where)
        except CannotConstruct:
            return

    def _put(self, expr: Expr, value: Any, at: WindowEdge) -> None:
        inner, where = _moved(expr, at, self.job.earlier, self._step)
        if isinstance(inner, Fold):
            if isinstance(value, Missing):
                self._miss(inner, value, where)
            else:
                self._fold(inner, value, where)
            return
        self.job.put(inner, value, where)
        self._done[inner, where] = value

    def _offer(self, expr: Expr, value: Value, at: WindowEdge) -> None:
        """Put a value unless there is one already. For a condition, put its operands."""
        if (expr, at) in self._done:
            return
        if plain(expr.type) == types.BOOL and isinstance(value, bool):
            self._condition(expr, value, at)
            return
        self._put(expr, value, at)

    # --- folds ----------------------------------------------------------------------------------

    def _miss(self, fold: Fold, why: Missing, at: WindowEdge) -> None:
        if why is Missing.ABSENT:
            raise CannotConstruct
        # A fold is unknown because one of its values is not recorded.
        if fold.scope == "time" and self.job.earlier == 0:
            return
        if fold.scope != "list":
            self._put(fold.value, Missing.NOT_RECORDED, at)

    def _fold(self, fold: Fold, value: Any, at: WindowEdge) -> None:
        if fold.scope == "group":
            places = [replace(at, rank=rank) for rank in range(self.job.members)]
            if fold.name in ("max", "min", "spread"):
                self._extremes(fold, at, places)
                return
        elif fold.scope == "time" and fold.over is not None:
            step = self._step
            places = [replace(at, window=at.window - n * step) for n in range(self._windows(fold))]
            if places[-1].window < -self.job.earlier:
                raise CannotConstruct
        else:
            self._list(fold, value, at)
            return
        there = [
            self._done[fold.value, place] for place in places if (fold.value, place) in self._done
        ]
        value = _for_the_rest(fold.name, value, there, len(places))
        for place, item in zip(places, self._items(fold, value, len(places)), strict=True):
            self._offer(fold.value, item, place)

    def _extremes(self, fold: Fold, at: WindowEdge, places: Sequence[WindowEdge]) -> None:
        """Put operands on the ranks so that max, min and spread have the values of the situation."""
        asked = {
            name: value
            for read, value in self.situation.reads.items()
            for name in ("max", "min", "spread")
            if read.expr == replace(fold, name=name) and read.start == at.start
            if isinstance(value, int | float)
        }
        zero = 0.0 if plain(fold.value.type) == types.FLOAT else 0
        apart = asked.get("spread", zero)
        high = asked.get("max", asked["min"] + apart if "min" in asked else apart)
        low = asked.get("min", high - apart)
        for place in places[:-1]:
            self._offer(fold.value, high, place)
        self._offer(fold.value, low, places[-1])

    def _windows(self, fold: Fold) -> int:
        assert fold.over is not None
        every = self.job.rule.window.every
        alike = every is not None and every.unit == fold.over.unit
        return ceil(fold.over.count / (self.job.stride * self._step if alike else 1))

    def _items(self, fold: Fold, value: Any, count: int) -> Sequence[Any]:
        """Operands for which a fold has this value."""
        kind = plain(fold.value.type)
        if fold.name == "count":
            if kind == types.BOOL:
                return [place < value for place in range(count)]
            raise CannotConstruct
        if fold.name in ("any", "all"):
            return [bool(value)] * count
        if fold.name in ("same", "distinct"):
            alike = (fold.name == "same") == bool(value)
            return [self._sample(kind, 0 if alike else place) for place in range(count)]
        return FOLDS[fold.name].numbers(value, count)

    def _sample(self, kind: Type, place: int) -> Value:
        """A value of a type; another place gives another value."""
        if kind == types.TENSOR:
            return PartialTensor({"digest": place})
        if kind == types.BOOL:
            return place == 0
        if kind == types.INT:
            return place
        if kind == types.FLOAT:
            return float(place)
        if kind == types.DTYPE:
            return ("float32", "float64", "float16")[place % 3]
        if isinstance(kind, Enum):
            return kind.members[place % len(kind.members)]
        if kind == types.STRING:
            return "abc"[place % 3]
        raise CannotConstruct

    def _list(self, fold: Fold, value: Any, at: WindowEdge) -> None:
        """Put as many subjects, calls or elements as a fold of a list needs."""
        source = fold.value
        if isinstance(source, rules.Subjects) and fold.name == "count" and not source.filters:
            there = sum(kind == source.kind for kind, _ in self.job.subjects)
            if value < there or value > 40:
                raise CannotConstruct
            for _ in range(value - there):
                self.job.new_subject(source.kind, source.kind)
            return
        if isinstance(source, rules.Calls) and fold.name == "count":
            there = sum(
                call.event in source.event.events
                for call in self.job.inner.get((at.rank, at.window), [])
            )
            if at.start or value < there or value > 40:
                raise CannotConstruct
            for _ in range(value - there):
                self.job.add_call(source.event, at)
            return
        if isinstance(source, rules.Feature) and (source.name, fold.name) == ("shape", "count"):
            self.job.put_rank(source.tensor, value, at)
            return
        if not isinstance(source, rules.Field):
            raise CannotConstruct
        of = plain(source.type)
        kind = plain(of.item) if isinstance(of, types.ListOf | types.SetOf) else types.SCALAR
        if fold.name == "count":
            items: Sequence[Any] = [self._sample(kind, n) for n in range(value)]
        else:
            items = self._items(replace(fold, value=replace(source, type=kind)), value, 2)
        self._elements(source, items, at)

    def _elements(self, source: rules.Field, items: Sequence[Any], at: WindowEdge) -> None:
        base = source.base
        if isinstance(base, rules.Subjects) and not base.filters:
            there = [Ref(*each) for each in self.job.subjects if each[0] == base.kind]
            while len(there) < len(items):
                there.append(self.job.new_subject(base.kind, base.kind))
            holders = [
                self.job.state.setdefault(at, {}).setdefault((ref.kind, ref.name), {})
                for ref in there
            ]
            for holder, item in zip(holders, items, strict=False):  # others hold nothing yet
                holder.setdefault(source.name, item)
            return
        if isinstance(base, rules.Calls):
            for item in items:
                self.job.add_call(base.event, at)
                self.job.inner[at.rank, at.window][-1].fields[source.name] = item
            return
        if isinstance(plain(base.type), Entity | CallOf):
            self.job.put(source, tuple(items), at)
            return
        raise CannotConstruct

    # --- conditions and claims ------------------------------------------------------------------

    def _condition(self, expr: Expr, truth: bool, at: WindowEdge) -> None:
        """Make a condition true or false at a position, by its first operands that do."""
        match expr:
            case rules.Not(value=inner):
                self._condition(inner, not truth, at)
            case rules.And(items=items):
                for item in items if truth else items[:1]:
                    self._condition(item, truth, at)
            case rules.Or(items=items):
                for item in items[:1] if truth else items:
                    self._condition(item, truth, at)
            case rules.Compare(op=op, left=left, right=right):
                self._compare(op, left, right, truth, at)
            case rules.Present(value=inner) if not truth:
                self._offer(inner, Missing.ABSENT, at)
            case rules.Ambient() | rules.Field() | rules.Feature():
                self._put(expr, truth, at)
            case _:
                raise CannotConstruct

    def _compare(self, op: str, left: Expr, right: Expr, truth: bool, at: WindowEdge) -> None:
        bound = known_number(right)
        numbers = (types.INT, types.FLOAT)
        if bound is None and plain(left.type) in numbers and plain(right.type) in numbers:
            beside = self._done.get((right, replace(at, window=0)), 1.0)
            bound = beside if isinstance(beside, int | float) else 1.0
            self._offer(right, bound, at)
        if bound is None or plain(left.type) not in (types.INT, types.FLOAT):
            if isinstance(right, rules.Constant) and op == "==" and truth:
                self._offer(left, right.value, at)
                return
            raise CannotConstruct
        above, below, equal = bound + 1, bound - 1, bound
        chosen = {
            "<": (below, above), "<=": (below, above), ">": (above, below), ">=": (above, below),
            "==": (equal, above), "!=": (above, equal),
        }[op][0 if truth else 1]  # fmt: skip
        number = float(chosen) if plain(left.type) == types.FLOAT else int(chosen)
        self._offer(left, number, at)

    def _claim(self, claim: Claim, met: bool | None, at: WindowEdge) -> None:
        match claim:
            case rules.Contains(event=event) if met:
                self.job.add_call(event, at)
            case rules.Ordered(events=events, edge=edge) if met is not None:
                ordered = events if edge == "before" else tuple(reversed(events))
                for event in ordered if met else ordered[-1:]:
                    self.job.add_call(event, at)
            case rules.OnlyDuring(subject=subject, change=True) if met is not None:
                for start in (True, False):
                    partial = PartialTensor({"digest": int(not (met or start))})
                    self.job.put(subject, partial, replace(at, start=start))
            case _:
                return


def _length(expr: Expr) -> int:
    inner = _bare(expr)
    return inner.over.count if isinstance(inner, Fold) and inner.over is not None else 0


def _for_the_rest(name: str, value: Any, there: Sequence[Any], count: int) -> Any:
    """The mean that the remaining operands need where some are put already."""
    if name != "mean" or not 0 < len(there) < count:
        return value
    if not all(isinstance(each, int | float) for each in there):
        return value
    return (count * value - sum(there)) / (count - len(there))


def _bare(expr: Expr) -> Expr:
    return _moved(expr, WindowEdge(), 1, 1)[0]


def _moved(expr: Expr, at: WindowEdge, earlier: int, step: int) -> tuple[Expr, WindowEdge]:
    """The expression inside `old`, `previous` and `first`, and the position at which it is read."""
    while True:
        match expr:
            case rules.Old(value=inner):
                expr, at = inner, replace(at, start=True)
            case rules.Previous(value=inner) if at.window - step >= -earlier:
                expr, at = inner, replace(at, window=at.window - step)
            case rules.First(value=inner) if earlier:
                expr, at = inner, replace(at, window=-earlier)
            case _:
                return expr, at


def _is_worked_out(expr: Expr) -> bool:
    return isinstance(expr, rules.Function) and FUNCTIONS[expr.name].of is not None

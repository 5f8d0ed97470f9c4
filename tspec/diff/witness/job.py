"""A synthetic job: the values that two rules read, by rank, window and edge, before it is a trace.

A value is put where an expression reads it: into a field of a subject at the start or end of a
window, a feature of a tensor, a field of a call, or the operand of a fold on one rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import EventPattern, Expr, Rule, Vocabulary
from tspec.resolve.program.types import CallOf, Entity, plain
from tspec.trace.model import Missing, Ref, Tensor


class CannotConstruct(Exception):
    """A value cannot be set where it is read: it is computed from other values, or another value is
    already set.
    """


@dataclass(frozen=True, slots=True)
class WindowEdge:
    """An edge of a window on a rank. Window 0 is the one that is decided, -1 the one before."""

    rank: int = 0
    window: int = 0
    start: bool = False


@dataclass(slots=True, eq=False)
class PartialTensor:
    """A tensor that does not have all of its features yet."""

    features: dict[str, Any] = field(default_factory=dict)

    def tensor(self) -> Tensor:
        """The tensor with the features that it has."""
        return Tensor(**self.features)


Value: TypeAlias = Any
"""A value of a trace, a PartialTensor, or a list or map that holds one."""

Subject = tuple[str, str]


@dataclass(slots=True)
class InnerCall:
    """A call in the window."""

    event: str
    fields: dict[str, Value]


class SyntheticJob:
    """The job in which two rules are decided. `put` fills it; `trace_of` writes it."""

    def __init__(
        self, rule: Rule, vocabulary: Vocabulary, members: int, earlier: int, stride: int = 1
    ) -> None:
        """`earlier`: the number of windows before the last; `stride`: units from one window to the next."""
        self.rule = rule
        self.stride = stride
        self.vocabulary = vocabulary
        self.members = members
        self.earlier = earlier
        self.state: dict[WindowEdge, dict[Subject, dict[str, Value]]] = {}
        self.context: dict[WindowEdge, dict[str, Any]] = {}
        self.call: dict[tuple[int, int], dict[str, Value]] = {}
        self.inner: dict[tuple[int, int], list[InnerCall]] = {}
        self.subjects: dict[Subject, None] = {}
        self.bound: dict[str, Value] = {}
        """The value of each variable: a Ref, or the type of a call."""
        self.elements: dict[tuple[str, int, int], PartialTensor] = {}
        """The tensor of a variable, by (variable, rank, window)."""
        for clause in rule.subjects:
            self._bind(clause)

    @property
    def places(self) -> Iterator[WindowEdge]:
        """Every member and window, at its end."""
        for rank in range(self.members):
            for window in range(-self.earlier, 1):
                yield WindowEdge(rank, window)

    # --- subjects -------------------------------------------------------------------------------

    def _bind(self, clause: rules.For) -> None:
        """Create a subject for a variable, in the collection that the clause names."""
        of = plain(clause.collection.type)
        item = of.item if isinstance(of, types.ListOf | types.SetOf) else types.SCALAR
        kind = plain(item)
        if isinstance(kind, CallOf):
            self.bound[clause.variable] = kind
            if self.rule.window.kind != "calls":
                assert isinstance(clause.collection, rules.Calls)
                for at in self.places:
                    self._inner(clause.collection.event, at)
            return
        made: Value = clause.variable
        if isinstance(kind, Entity):
            made = self.new_subject(kind.kind, clause.variable)
        self.bound[clause.variable] = made
        base = clause.collection
        while isinstance(base, rules.Restrict):
            base = base.collection
        for at in self.places:
            if kind == types.TENSOR:  # An element of a list is another tensor in each window.
                made = self.elements[clause.variable, at.rank, at.window] = PartialTensor()
            if isinstance(base, rules.Field):
                many = frozenset({made}) if isinstance(plain(base.type), types.SetOf) else (made,)
                self.put(base, many, at)

    def new_subject(self, kind: str, name: str) -> Ref:
        """A new subject of a kind, with this name or one like it."""
        taken = {each for _, each in self.subjects}
        number = 2
        unused = name
        while unused in taken:
            unused, number = f"{name}{number}", number + 1
        self.subjects[kind, unused] = None
        return Ref(kind, unused)

    def _subject(self, expr: Expr, at: WindowEdge) -> Ref:
        """The subject that an expression reads; the one in a field is created on demand."""
        if isinstance(expr, rules.Variable):
            found = self.bound.get(expr.name)
        elif isinstance(expr, rules.Old):
            return self._subject(expr.value, replace(at, start=True))
        elif isinstance(expr, rules.Field):
            found = self._read(expr, at)
            kind = plain(expr.type)
            if found is None and isinstance(kind, Entity):
                found = self.new_subject(kind.kind, f"{expr.name}_of_{_name(expr.base)}")
                for place in self.places:
                    for start in (True, False):
                        self.put(expr, found, replace(place, start=start))
        else:
            found = None
        if not isinstance(found, Ref):
            raise CannotConstruct
        return found

    def _read(self, expr: rules.Field, at: WindowEdge) -> Value | None:
        holder = self._holder(expr.base, at)
        return holder.get(expr.name)

    def _holder(self, base: Expr, at: WindowEdge) -> dict[str, Value]:
        """The fields of a subject or call at a position."""
        if isinstance(base, rules.Old):
            return self._holder(base.value, replace(at, start=True))
        if isinstance(base, rules.WindowCall):
            return self.call.setdefault((at.rank, at.window), {})
        if isinstance(base, rules.LastCall):
            return self._inner(base.event, at).fields
        if isinstance(base, rules.Variable) and isinstance(plain(base.type), CallOf):
            if self.rule.window.kind == "calls":
                return self.call.setdefault((at.rank, at.window), {})
            clause = next(c for c in self.rule.subjects if c.variable == base.name)
            assert isinstance(clause.collection, rules.Calls)
            return self._inner(clause.collection.event, at).fields
        ref = self._subject(base, at)
        return self.state.setdefault(at, {}).setdefault((ref.kind, ref.name), {})

    def _inner(self, event: EventPattern, at: WindowEdge) -> InnerCall:
        """The call in the window that matches a pattern; created on demand."""
        calls = self.inner.setdefault((at.rank, at.window), [])
        for call in calls:
            if call.event in event.events:
                return call
        fields = {each.field: self.constant(each.value) for each in event.filters}
        calls.append(InnerCall(event.events[0], fields))
        return calls[-1]

    def add_call(self, event: EventPattern, at: WindowEdge) -> None:
        """Append a call to the window."""
        fields = {each.field: self.constant(each.value) for each in event.filters}
        self.inner.setdefault((at.rank, at.window), []).append(InnerCall(event.events[0], fields))

    def constant(self, expr: Expr) -> Value:
        """The value that a filter compares with: a constant, or the value of a variable."""
        if isinstance(expr, rules.Constant):
            return expr.value
        if isinstance(expr, rules.Variable) and isinstance(self.bound.get(expr.name), Ref):
            return self.bound[expr.name]
        raise CannotConstruct

    # --- values ---------------------------------------------------------------------------------

    def put(self, expr: Expr, value: Value, at: WindowEdge) -> None:
        """Make an expression read this value at a position. Raises CannotConstruct."""
        match expr:
            case rules.Ambient(name=name):
                self.context.setdefault(at, {})[name] = value
            case rules.Old(value=inner):
                self.put(inner, value, replace(at, start=True))
            case rules.Previous(value=inner) if at.window > -self.earlier:
                if value is not Missing.NO_HISTORY:
                    self.put(inner, value, replace(at, window=at.window - 1))
            case rules.First(value=inner) if self.earlier:
                self.put(inner, value, replace(at, window=-self.earlier))
            case rules.Field(base=base, name=name):
                self._put_field(base, name, value, at)
            case rules.Feature(tensor=tensor) if isinstance(value, Missing):
                if value is Missing.ABSENT:  # Since the tensor is: it has no features.
                    self.put(tensor, value, at)
            case rules.Feature(name=name, tensor=tensor) if expr.per is None and expr.dim is None:
                self._put_feature(name, self.tensor(tensor, at), value)
            case rules.Index(base=rules.Feature(name="shape", tensor=tensor), index=index):
                self._put_size(self.tensor(tensor, at), index, value)
            case rules.Member(item=item, collection=rules.Field() as many) if isinstance(
                value, bool
            ):
                members = frozenset({self._subject(item, at)} if value else ())
                self._put_field(many.base, many.name, members, at)
            case rules.Index(base=base, index=rules.Constant(value=key)):
                self._put_element(base, key, value, at)
            case rules.Function(name="isinstance", arguments=(of, rules.Constant(value=cls))):
                holder = self._class_holder(of, at)
                if "class" not in holder or value is True:
                    holder["class"] = cls if value is True else "other.Module"
            case _:
                raise CannotConstruct

    def _put_field(self, base: Expr, name: str, value: Value, at: WindowEdge) -> None:
        of = plain(base.type)
        if isinstance(of, types.ListOf | types.SetOf):
            raise CannotConstruct
        if of == types.DEVICE:
            raise CannotConstruct
        self._holder(base, at)[name] = value

    def _class_holder(self, of: Expr, at: WindowEdge) -> dict[str, Value]:
        if isinstance(of, rules.Field) and plain(of.type) == types.CLASS:
            return self._holder(of.base, at)
        return self._holder(of, at)

    def tensor(self, expr: Expr, at: WindowEdge) -> PartialTensor:
        """The tensor that an expression reads; its features are put into it."""
        if isinstance(expr, rules.Variable):
            found: Value = self.elements.get((expr.name, at.rank, at.window))
        elif isinstance(expr, rules.Old):
            return self.tensor(expr.value, replace(at, start=True))
        elif isinstance(expr, rules.Previous) and at.window > -self.earlier:
            return self.tensor(expr.value, replace(at, window=at.window - 1))
        elif isinstance(expr, rules.Field) and plain(expr.type) == types.TENSOR:
            holder = self._holder(expr.base, at)
            found = holder.setdefault(expr.name, PartialTensor())
        elif isinstance(expr, rules.Field) and isinstance(expr.base, rules.Subjects):
            found = self._only_one(expr.base, at).setdefault(expr.name, PartialTensor())
        elif isinstance(expr, rules.Index) and isinstance(expr.index, rules.Constant):
            found = self._element(expr.base, expr.index.value, at)
        else:
            raise CannotConstruct
        if not isinstance(found, PartialTensor):
            raise CannotConstruct
        return found

    def _only_one(self, subjects: rules.Subjects, at: WindowEdge) -> dict[str, Value]:
        """The fields of the only subject of a kind; created on demand."""
        there = [Ref(*each) for each in self.subjects if each[0] == subjects.kind]
        if len(there) > 1:
            raise CannotConstruct
        ref = there[0] if there else self.new_subject(subjects.kind, subjects.kind)
        holder = self.state.setdefault(at, {}).setdefault((ref.kind, ref.name), {})
        for each in subjects.filters:
            holder.setdefault(each.field, self.constant(each.value))
        return holder

    def _put_size(self, partial: PartialTensor, index: Expr, value: Value) -> None:
        """Put one size of a shape; the others are 1."""
        if not isinstance(index, rules.Constant) or not isinstance(index.value, int):
            raise CannotConstruct
        if isinstance(value, Missing) or not isinstance(value, int):
            raise CannotConstruct
        place = index.value
        sizes = list(partial.features.get("shape", ()))
        sizes += [1] * (max(place + 1, -place) - len(sizes))
        sizes[place] = value
        partial.features["shape"] = tuple(sizes)

    def put_rank(self, tensor: Expr, count: int, at: WindowEdge) -> None:
        """Put the number of dimensions of a tensor."""
        partial = self.tensor(tensor, at)
        sizes = list(partial.features.get("shape", ()))
        if len(sizes) > count:
            raise CannotConstruct
        partial.features["shape"] = tuple(sizes + [1] * (count - len(sizes)))

    def _element(self, base: Expr, key: object, at: WindowEdge) -> Value:
        """A tensor in a list of a subject or call."""
        if not isinstance(base, rules.Field) or key not in (0, -1):
            raise CannotConstruct
        holder = self._holder(base.base, at)
        items = holder.setdefault(base.name, (PartialTensor(),))
        if not isinstance(items, tuple) or not items:
            raise CannotConstruct
        return items[0]

    def _put_feature(self, name: str, partial: PartialTensor, value: Value) -> None:
        if name == "zeros":
            fraction = float(value).as_integer_ratio()
            partial.features["zeros"], partial.features["numel"] = fraction
            return
        partial.features[name] = value

    def _put_element(self, base: Expr, key: object, value: Value, at: WindowEdge) -> None:
        if not isinstance(base, rules.Field):
            raise CannotConstruct
        holder = self._holder(base.base, at)
        if isinstance(key, str):
            held = holder.setdefault(base.name, {})
            if not isinstance(held, dict):
                raise CannotConstruct
            if value is not Missing.ABSENT:
                held[key] = value
            return
        if key not in (0, -1) or value is Missing.ABSENT:
            raise CannotConstruct
        holder[base.name] = (value,)


def _name(expr: Expr) -> str:
    if isinstance(expr, rules.Variable):
        return expr.name
    if isinstance(expr, rules.Field):
        return f"{expr.name}_of_{_name(expr.base)}"
    return "call"


def finished(value: Value) -> Any:
    """A value with each PartialTensor replaced by its tensor."""
    if isinstance(value, PartialTensor):
        return value.tensor()
    if isinstance(value, tuple):
        return tuple(map(finished, value))
    if isinstance(value, dict):
        return {key: finished(item) for key, item in value.items()}
    return value


def settled(fields: Mapping[str, Value]) -> dict[str, Any]:
    """Fields as a trace holds them."""
    return {name: finished(value) for name, value in fields.items()}

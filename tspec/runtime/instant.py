"""One instant of a rank, as rules read it: subjects, fields and features, each read at most once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from tspec.builtin.kinds import PASSING
from tspec.builtin.numbers import as_float
from tspec.builtin.structure import STRUCTURE
from tspec.runtime.calls.call import CallRecord
from tspec.runtime.columns import SampleHistory, Structure, Want
from tspec.runtime.edges import Context, Missing, Ref, StateSource
from tspec.runtime.functions import device_part, is_of_class
from tspec.runtime.reading import read_more, read_samples
from tspec.runtime.tensors import TensorSample, column_of, handles
from tspec.runtime.transfers import NumberInTransfer, arrived
from tspec.runtime.values import ABSENT, NOT_RECORDED, equal, is_number
from tspec.values import STEP_OF_RUN, Datum, step_of_run

_NONE: frozenset[str] = frozenset()
_Column = tuple[tuple[str, str], Mapping[str, Datum], list[Datum]]


class _Memo:
    """The values read at one instant. Columns are keyed by (kind, field)."""

    def __init__(self) -> None:
        self.wanted: dict[tuple[str, str], set[str]] = {}
        """Column -> the features announced for it that are not read yet."""
        self.features: dict[tuple[str, str], set[str] | frozenset[str]] = {}
        """Column -> the features that were read with it."""
        self.columns: dict[tuple[str, str], Mapping[str, Datum]] = {}
        self.births: dict[str, Mapping[str, int]] = {}
        self.ambients: dict[str, Datum] = {}


class _PassMemo:
    """The values without tensors that were read. The instants within one forward pass share them."""

    def __init__(self) -> None:
        self.names: dict[str, tuple[str, ...]] = {}
        self.refs: dict[str, tuple[Ref, ...]] = {}
        self.columns: dict[tuple[str, str], Mapping[str, Datum]] = {}
        self.places: dict[str, dict[str, int]] = {}
        """Kind -> the position of each subject in order of creation."""
        self.chosen: dict[tuple[str, str], tuple[str, ...]] = {}
        """(kind, filters as text) -> the names of the subjects that match."""


class StateInstant:
    """The state at one instant. Columns are read on first use, all tensors together."""

    __slots__ = (
        "_begun",
        "_kept",
        "_own",
        "_shared",
        "context",
        "samples",
        "seq",
        "source",
        "structure",
    )

    def __init__(
        self, source: StateSource, context: Context, samples: SampleHistory | None = None
    ) -> None:
        self.source = source
        self.samples = samples
        self.structure: Structure | None = None
        """The structure of the models as read in this step; None if it must not be kept."""
        self.seq = source.seq
        self.context = context
        self._own: _Memo | None = None
        self._shared: _PassMemo | None = None
        self._begun: FirstSamples | None = None
        self._kept: tuple[tuple[Sequence[str], Sequence[str]], ...] = ()

    # Both memos are made on first use: at most calls nothing is read, and there are many.

    @property
    def _memo(self) -> _Memo:
        memo = self._own
        if memo is None:
            memo = self._own = _Memo()
        return memo

    @property
    def _pass_memo(self) -> _PassMemo:
        memo = self._shared
        if memo is None:
            memo = self._shared = _PassMemo()
        return memo

    # reading, all at once

    def want(self, wants: Iterable[Want]) -> None:
        """Announce columns that will be read at this instant, so that their features are read in one batch."""
        for kind, name, features in wants:
            if self.samples is not None and kind in PASSING:
                continue
            self._memo.wanted.setdefault((kind, name), set()).update(features)

    def fetch(self) -> None:
        """Read the announced values that are not read yet. Tensors with the same features are read
        in one call.
        """
        memo = self._own
        if memo is None or not memo.wanted:
            return
        pending: dict[tuple[str, ...], list[_Column]] = {}
        for key, features in memo.wanted.items():
            known = memo.columns.get(key)
            new = features - memo.features.get(key, _NONE)
            if known is not None and not new:
                continue
            if not features:
                memo.columns[key] = self._plain_column(key)
                continue
            raw = self.source.fields(*key)
            if key in memo.features and known is not None:
                read_more(self.source, raw, known, tuple(sorted(new)))
            else:
                found = handles(raw.values())
                pending.setdefault(tuple(sorted(features)), []).append((key, raw, found))
            memo.features[key] = memo.features.get(key, _NONE) | features
        memo.wanted.clear()
        for names, columns in pending.items():
            together = [handle for _, _, found in columns for handle in found]
            samples = read_samples(self.source, together, names)
            for key, raw, _ in columns:
                memo.columns[key] = column_of(raw, samples)

    def _plain_column(self, key: tuple[str, str]) -> Mapping[str, Datum]:
        """A column without features. It is read once within a forward pass."""
        found = self._pass_memo.columns.get(key)
        if found is None:
            held = self.structure if key in STRUCTURE else None
            known = None if held is None else held.columns.get(key)
            if known is not None and known[0] == self.subjects(key[0]):
                found = known[1]
            else:
                raw = self.source.fields(*key)
                found = column_of(raw, map(TensorSample, repeat({})))
                if held is not None:
                    held.columns[key] = (self.subjects(key[0]), found)
            self._pass_memo.columns[key] = found
        return found

    def keep(self, kinds: Sequence[str], ambients: Sequence[str]) -> None:
        """Announce the values that `old` will read later, besides columns."""
        self._kept = (*self._kept, (kinds, ambients))

    def hold(self) -> None:
        """Read now the values that are needed later."""
        self.fetch()
        for kinds, ambients in self._kept:
            for kind in kinds:
                self.subjects(kind)
                if kind in PASSING:
                    self._births(kind)
            for name in ambients:
                self._sampled(name)
        self._kept = ()

    def within(self, other: StateInstant) -> None:
        """Share the values without tensors with the first instant of the same forward pass."""
        self._shared = other._pass_memo

    def opened(self, context: Context) -> StateInstant:
        """The same instant in the context of the span that opens. It shares the values already
        read.
        """
        other = StateInstant(self.source, context, self.samples)
        other.structure = self.structure
        memo, known = other._memo, self._memo
        memo.wanted, memo.columns, memo.features = known.wanted, known.columns, known.features
        memo.births = known.births
        shared, found = other._pass_memo, self._pass_memo
        shared.names, shared.refs, shared.columns = found.names, found.refs, found.columns
        return other

    @property
    def begun(self) -> FirstSamples:
        """Fields as they were first sampled, at or before this instant."""
        if self._begun is None:
            self._begun = FirstSamples(self)
        return self._begun

    # subjects

    def column(self, kind: str, name: str) -> Mapping[str, Datum]:
        """One declared field of every subject of a kind, tensors with their features."""
        found = self._memo.columns.get((kind, name))
        if found is not None:
            return found
        if kind in PASSING and self.samples is not None:
            return self.samples.column(kind, name) or {}
        return self.live_column(kind, name)

    def live_column(
        self, kind: str, name: str, features: tuple[str, ...] = ()
    ) -> Mapping[str, Datum]:
        """The same as the source has it now, whatever is remembered."""
        found = self._memo.columns.get((kind, name))
        if found is None:
            self._memo.wanted.setdefault((kind, name), set()).update(features)
            self.fetch()
            found = self._memo.columns[kind, name]
        return found

    def subjects(self, kind: str) -> tuple[str, ...]:
        """Canonical names, the oldest first."""
        found = self._pass_memo.names.get(kind)
        if found is None:
            found = self._pass_memo.names[kind] = tuple(self.source.subjects(kind))
        return found

    def chosen(self, kind: str, filters: tuple[tuple[str, Datum], ...]) -> tuple[str, ...]:
        """The names of the subjects whose fields equal these values. The fields hold no tensors."""
        names = self.subjects(kind)
        held = self.structure
        key = (kind, str(filters))
        if held is None or any((kind, name) not in STRUCTURE for name, _ in filters):
            if any((kind, name) in self._memo.columns for name, _ in filters):
                return self._chosen(kind, names, filters)
            found = self._pass_memo.chosen.get(key)
            if found is None:
                found = self._pass_memo.chosen[key] = self._chosen(kind, names, filters)
            return found
        known = held.chosen.get(key)
        if known is None or known[0] != names:
            known = held.chosen[key] = (names, self._chosen(kind, names, filters))
        return known[1]

    def _chosen(
        self, kind: str, names: tuple[str, ...], filters: tuple[tuple[str, Datum], ...]
    ) -> tuple[str, ...]:
        for name, wanted in filters:
            column = self._memo.columns.get((kind, name))
            if column is None:
                column = self._plain_column((kind, name))
            read = column.get
            if wanted.__class__ is bool:
                names = tuple([each for each in names if read(each) is wanted])
            else:
                found = self.matches
                names = tuple(
                    [each for each in names if found(name, read(each, NOT_RECORDED), wanted)]
                )
        return names

    def born_between(self, kind: str, first: int, last: int) -> tuple[str, ...]:
        """The subjects whose first sample lies between two instants, both included."""
        at = self._births(kind)
        return tuple(name for name in at if first <= at[name] <= min(last, self.seq))

    def _births(self, kind: str) -> Mapping[str, int]:
        """Subject -> the instant of its first sample, for those that exist at the first such call."""
        births = self._memo.births
        if kind not in births:
            born = self.source.born if self.samples is None else self.samples.born
            births[kind] = dict(born(kind))
        return births[kind]

    def refs(self, kind: str) -> tuple[Ref, ...] | Missing:
        """All subjects of a kind as values."""
        found = self._pass_memo.refs.get(kind)
        if found is None:
            names = self.subjects(kind)
            held = self.structure
            known = None if held is None else held.refs.get(kind)
            if known is not None and known[0] == names:
                found = known[1]
            else:
                found = tuple([Ref(kind, name) for name in names])
                if held is not None:
                    held.refs[kind] = (names, found)
            self._pass_memo.refs[kind] = found
        return found

    # fields

    def of(self, subject: Ref, name: str) -> Datum:
        """A field of a subject: not recorded where the subject has no such sample."""
        return self.column(subject.kind, name).get(subject.name, NOT_RECORDED)

    def of_call(self, call: CallRecord, name: str) -> Datum:
        """A field of a call: of the result if it has returned by now."""
        if call.end is None or call.end <= self.seq:
            return call.get(name)
        return call.given_field(name)

    def field(self, base: Datum, name: str) -> Datum:
        """A field of one subject, call or device; for a list of these, the list of fields."""
        if base.__class__ is Ref:
            return self.of(base, name)
        if base.__class__ is CallRecord:
            return self.of_call(base, name)
        if base.__class__ is Missing:
            return base
        if isinstance(base, tuple):
            return tuple(self.field(each, name) for each in base)
        if isinstance(base, str) and name in ("type", "index"):
            return device_part(base, name)
        return NOT_RECORDED

    def field_of_each(self, base: Datum, name: str, union: bool) -> Datum:
        """A field of a collection: the list without absent elements; `union`: of sets, all in one."""
        if not isinstance(base, (tuple, frozenset)):
            return self.field(base, name)
        return gathered(self._fields(self.ordered(base), name), union)

    def _fields(self, elements: Sequence[Datum], name: str) -> list[Datum]:
        """A field of each element. For subjects of one kind, it is read from the column."""
        subjects = [each for each in elements if each.__class__ is Ref]
        if len(subjects) < len(elements) or len({each.kind for each in subjects}) != 1:
            return [self.field(each, name) for each in elements]
        column = self.column(subjects[0].kind, name)
        return [column.get(each.name, NOT_RECORDED) for each in subjects]

    def class_of(self, value: Datum) -> Datum:
        """The operand of `isinstance`: the `class` of a subject or call, or a class itself."""
        return self.field(value, "class") if value.__class__ in (Ref, CallRecord) else value

    def matches(self, name: str, found: Datum, wanted: Datum) -> bool:
        """One filter: true if the field equals the value, or for `class` if the subject is an
        instance of it. A missing field does not match.
        """
        if found is wanted:
            return found.__class__ in (bool, str) or equal(found, wanted) is True
        if found.__class__ is Missing or wanted.__class__ is Missing:
            return False
        if name == "class":
            return is_of_class(self.class_of(found), wanted) is True
        return equal(found, wanted) is True

    def restricted(self, collection: Datum, filters: Sequence[tuple[str, Datum]]) -> Datum:
        """The elements of a collection whose fields equal the values."""
        if not isinstance(collection, (tuple, frozenset)):
            return collection
        kept = list(collection)
        for name, wanted in filters:
            found = zip(kept, self._fields(kept, name), strict=True)
            if wanted.__class__ is bool and name != "class":
                kept = [each for each, value in found if value is wanted]
            else:
                kept = [each for each, value in found if self.matches(name, value, wanted)]
        return frozenset(kept) if isinstance(collection, frozenset) else tuple(kept)

    def listed(self, value: Datum) -> Datum:
        """A set as a list in order; all else as it is."""
        return self.ordered(value) if isinstance(value, frozenset) else value

    def ordered(self, collection: Datum) -> tuple[Datum, ...]:
        """The elements of a list or set in order: subjects as they came into being, other values by value."""
        if isinstance(collection, tuple):
            return collection
        if not isinstance(collection, frozenset):
            return ()
        kinds = {each.kind if each.__class__ is Ref else "" for each in collection}
        if len(kinds) == 1 and "" not in kinds:
            places = self._places_of(kinds.pop())
            last = len(places)
            order = sorted([(places.get(ref.name, last), ref.name, ref) for ref in collection])
            return tuple([ref for _, _, ref in order])
        return tuple(sorted(collection, key=self._rank_in_set))

    def _rank_in_set(self, value: Datum) -> tuple[str, float, str]:
        if value.__class__ is Ref:
            places = self._places_of(value.kind)
            return ("ref", places.get(value.name, len(places)), value.name)
        if is_number(value):
            return ("number", as_float(value), "")
        return (value.__class__.__name__, 0.0, str(value))

    def _places_of(self, kind: str) -> Mapping[str, int]:
        """The position of each subject of a kind in order of creation."""
        found = self._pass_memo.places.get(kind)
        if found is None:
            past = self.source.past
            names = self.subjects(kind) if past is None else past.ever(kind)
            found = self._pass_memo.places[kind] = {name: place for place, name in enumerate(names)}
        return found

    # context

    def ambient(self, name: str) -> Datum:
        """A context value: `step` and the like, or the latest sample."""
        value = self._sampled(name)
        if value.__class__ is NumberInTransfer:
            value = self._memo.ambients[name] = arrived(value)
        return value

    def arrived(self, name: str) -> Datum:
        """A context value; not recorded while a device still has it."""
        value = self._sampled(name)
        if value.__class__ is NumberInTransfer and not value.arrived():
            return NOT_RECORDED
        return self.ambient(name)

    def _sampled(self, name: str) -> Datum:
        """A context value, read once; it may be in transfer."""
        ambients = self._memo.ambients
        if name not in ambients:
            ambients[name] = self._ambient(name)
        return ambients[name]

    def _ambient(self, name: str) -> Datum:
        if name == "rank":
            return self.source.rank
        of_context = self.context.value(name)
        if of_context is not None:
            return of_context
        if name == STEP_OF_RUN:
            return step_of_run(self.context.step, self.source.first_step)
        return self.source.ambient(name)

    def ranks(self, axis: str) -> tuple[int, ...] | None:
        """This rank's group on an axis, in order; None where there is none."""
        if axis == "world":
            return tuple(range(self.source.world))
        return self.source.ranks(axis)


class FirstSamples(StateInstant):
    """The same instant, with every field as it was first sampled."""

    __slots__ = ("_firsts", "_instant")

    def __init__(self, instant: StateInstant) -> None:
        super().__init__(instant.source, instant.context, instant.samples)
        self.seq = instant.seq
        self._instant = instant
        self._firsts: dict[tuple[str, str], Mapping[str, Datum]] = {}

    def column(self, kind: str, name: str) -> Mapping[str, Datum]:
        """One field of every subject as it was first sampled."""
        if self.samples is not None:
            return self.samples.first(kind, name)
        found = self._firsts.get((kind, name))
        if found is None:
            past = self.source.past
            raw = {} if past is None else past.first(kind, name)
            names = tuple(sorted(self._memo.wanted.get((kind, name), ())))
            samples = read_samples(self.source, handles(raw.values()), names)
            found = self._firsts[kind, name] = column_of(raw, samples)
        return found


def gathered(values: Iterable[Datum], union: bool) -> Datum:
    """The field of a collection from the field of each element."""
    present = tuple([value for value in values if value is not ABSENT])
    if not union:
        return present
    why = next((value for value in present if value.__class__ is Missing), None)
    if why is not None:
        return why
    return frozenset().union(*(value for value in present if isinstance(value, frozenset)))

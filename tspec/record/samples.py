"""The last sample of each field, so that only changes are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Any

from tspec.runtime.edges import StateSource
from tspec.trace import model
from tspec.trace.model import Sample, Value
from tspec.values import Missing, Ref

PLAIN = ("shape", "dtype", "device", "numel", "requires_grad")
"""Features that cost nothing."""
STATE = ("digest", "norm", "finite", "zeros", *PLAIN)
"""Features of lasting tensors: parameters, gradients, buffers, optimizer state."""
INITIAL = (*STATE, "min", "max")
"""Features of parameters and gradients in the first steps, which show how the parameters were initialised."""
FULL = ("digest", "norm", "finite", "zeros", "min", "max", "mean", "std", "memory_format", *PLAIN)
"""Features of transient tensors that are worth the cost: batches, the outermost inputs and outputs."""


def value_of(value: Any) -> Value:
    """A value of the live source as one of the trace, tensors left out."""
    if isinstance(value, (bool, int, float, str, Missing, Ref)):
        return value
    if isinstance(value, tuple):
        return tuple(value_of(item) for item in value)
    if isinstance(value, frozenset):
        return frozenset(value_of(item) for item in value)
    if isinstance(value, Mapping):
        return {str(key): value_of(item) for key, item in value.items()}
    return Missing.NOT_RECORDED


class Samples:
    """The last sample of every field of every subject."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], dict[str, Any]] = {}
        self._known: dict[str, dict[str, None]] = {}
        self._columns: dict[str, dict[str, dict[str, Any]]] = {}
        """Kind -> name -> the last column of a field that holds no tensors: most have not changed, and are compared whole."""

    def plain(self, source: StateSource, kind: str, names: Sequence[str]) -> Iterator[Sample]:
        """Samples of fields that hold no tensors, where they have changed."""
        last = self._columns.setdefault(kind, {})
        columns = {}
        for name in names:
            column = source.fields(kind, name)
            if name not in last or not _alike(last[name], column):
                columns[name] = last[name] = dict(column)
        if not columns and not self.has_new(source, kind):
            return
        for subject in source.subjects(kind):
            fields = {
                name: column[subject] for name, column in columns.items() if subject in column
            }
            yield from self._changed(source, kind, subject, fields)

    def tensors(
        self, source: StateSource, kind: str, names: Sequence[str], features: tuple[str, ...]
    ) -> Iterator[Sample]:
        """Samples of fields that hold tensors, where digest or object has changed."""
        held: list[tuple[str, str, Any]] = []
        for name in names:
            held += [(subject, name, value) for subject, value in source.fields(kind, name).items()]
        flat = [value for _, _, value in held]
        if "digest" in features:
            rows = source.features(flat, ("digest", "object"))
            fresh = [i for i, row in enumerate(rows) if self._is_fresh(kind, held[i], row)]
        else:
            rows, fresh = [{} for _ in flat], list(range(len(flat)))
        rest = tuple(name for name in features if name not in ("digest", "object"))
        looked = source.features([flat[i] for i in fresh], rest)
        changed: dict[str, dict[str, Any]] = {}
        for i, more in zip(fresh, looked, strict=True):
            subject, name, value = held[i]
            if isinstance(value, Missing):
                changed.setdefault(subject, {})[name] = value
            else:
                changed.setdefault(subject, {})[name] = tensor({**rows[i], **more})
        for subject, fields in changed.items():
            yield from self._changed(source, kind, subject, fields)

    def has_new(self, source: StateSource, kind: str) -> bool:
        """True if there are subjects of the kind that were never sampled."""
        known = self._known.get(kind, {})
        return not all(map(known.__contains__, source.subjects(kind)))

    def gone(self, source: StateSource, kind: str) -> Iterator[Sample]:
        """Samples of subjects that are no more."""
        for subject in self._let_go(source, kind):
            yield Sample(source.seq, source.context, kind, subject, {}, gone=True)

    def forget(self, source: StateSource, kind: str) -> None:
        """Let go of subjects that are no more, without a sample: that they end with the step goes without saying."""
        self._let_go(source, kind)

    def _let_go(self, source: StateSource, kind: str) -> list[str]:
        """Drop what is known of subjects that are no more, and return their names."""
        now = set(source.subjects(kind))
        gone = [each for each in self._known.get(kind, {}) if each not in now]
        for subject in gone:
            del self._known[kind][subject]
            self._last.pop((kind, subject), None)
        if gone:
            self._columns.pop(kind, None)
        return gone

    def one(
        self, source: StateSource, kind: str, subject: str, fields: Mapping[str, Value]
    ) -> Iterator[Sample]:
        """A sample of one subject, of the fields that have changed."""
        return self._changed(source, kind, subject, dict(fields), converted=True)

    def _is_fresh(self, kind: str, held: tuple[str, str, Any], row: Mapping[str, Any]) -> bool:
        subject, name, value = held
        last = self._last.get((kind, subject), {}).get(name)
        if isinstance(value, Missing):
            return last is not value
        if not isinstance(last, model.Tensor) or isinstance(row["digest"], Missing):
            return True
        if kind == "generator":  # its state is another object each time that it is read
            return bool(last.digest != row["digest"])
        return bool(last.digest != row["digest"] or last.object != row["object"])

    def _changed(
        self,
        source: StateSource,
        kind: str,
        subject: str,
        fields: dict[str, Any],
        converted: bool = False,
    ) -> Iterator[Sample]:
        last = self._last.get((kind, subject))
        first = last is None
        if last is None:
            last = self._last[kind, subject] = {}
            self._known.setdefault(kind, {})[subject] = None
        changed: dict[str, Value] = {}
        for name, value in fields.items():
            if name in last and _same(last[name], value):
                continue
            last[name] = value
            changed[name] = (
                value if converted or isinstance(value, model.Tensor | Missing) else value_of(value)
            )
        if changed or first:
            yield Sample(source.seq, source.context, kind, subject, changed)


def _alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """True if two columns have the same values, of the same types."""
    return a == b and all(map(is_, map(type, a.values()), map(type, map(b.get, a))))


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    both_nan = isinstance(a, float) and a != a and b != b
    return both_nan or bool(a == b)


def tensor(row: Mapping[str, Any]) -> model.Tensor:
    """Features as the trace holds them. A missing feature was not recorded."""
    if len(row) == len(PLAIN):
        return _plain_tensor(tuple(row.items()))
    return model.Tensor(
        **{name: value for name, value in row.items() if value.__class__ is not Missing}
    )


@lru_cache(maxsize=4096)
def _plain_tensor(row: tuple[tuple[str, Any], ...]) -> model.Tensor:
    """Layers see the same shapes in every step."""
    return model.Tensor(**{name: value for name, value in row if not isinstance(value, Missing)})

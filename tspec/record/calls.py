"""The fields of calls: which features of the tensors among them are worth their price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from tspec.builtin.events import roles_of
from tspec.record.samples import FULL, PLAIN, tensor, value_of
from tspec.runtime import edges
from tspec.runtime.edges import StateSource, UnresolvedRef, WatchedCall
from tspec.runtime.transfers import arrived
from tspec.trace import model
from tspec.trace.model import Value

INSIDE = ("digest", "norm", "finite", "zeros", "min", "max", *PLAIN)
"""Features of tensors inside a model."""
EVERY = 50
"""The inputs and outputs of modules are read in the first two steps, and in every step divisible by this."""
LOSSES = ("_loss", ".cross_entropy", ".kl_div", "binary_cross_entropy", "_with_logits")
"""The ends of the names of loss functions. Their tensors are read in every step."""


class CallFields:
    """Turns the fields of calls into values of the trace."""

    def __init__(self) -> None:
        self._begun: dict[int, int] = {}
        """The number of fields that an open call began with. Those of its result come after them."""
        self._unnamed: list[tuple[dict[str, Value], str, UnresolvedRef]] = []

    def at_begin(self, call: WatchedCall, source: StateSource) -> dict[str, Value]:
        """Fields that the arguments gave."""
        fields = call.fields
        self._begun[call.id] = len(fields)
        found = _values(call, fields.items(), source)
        for name, value in fields.items():
            if value.__class__ is UnresolvedRef:
                self._unnamed.append((found, name, value))
        return found

    def name_late(self) -> None:
        """Before anything is on disk: subjects that calls gave before their names were known."""
        for fields, name, value in self._unnamed:
            fields[name] = value_of(value.named())
        self._unnamed.clear()

    def at_end(self, call: WatchedCall, source: StateSource) -> dict[str, Value]:
        """Fields that came with the result."""
        begun = self._begun.pop(call.id, 0)
        return _values(call, islice(call.fields.items(), begun, None), source)


def is_outermost(call: WatchedCall) -> bool:
    """The forward pass of a root: no other encloses it."""
    if call.event != "forward":
        return False
    parent = call.parent
    while parent is not None:
        if parent.event == "forward":
            return False
        parent = parent.parent
    return True


@lru_cache(maxsize=4096)
def _is_whole(event: str, callable: str) -> bool:
    """True if the call's tensors are read in every step: it computes a loss, or its event is
    declared and no frequent inner one.
    """
    if event == callable:
        return callable.endswith(LOSSES)
    return not roles_of(event).inner


def _features(call: WatchedCall, source: StateSource) -> tuple[str, ...]:
    if _is_whole(call.event, call.callable) or is_outermost(call):
        return (*FULL, "name") if roles_of(call.event).tensor_names else FULL
    now = source.context
    looks = now.step <= 2 or (now.step % EVERY == 0 and now.phase == "train")
    if looks and (call.event == "forward" or call.callable.endswith(".forward")):
        return INSIDE
    return PLAIN


def _values(
    call: WatchedCall, fields: Iterable[tuple[str, Any]], source: StateSource
) -> dict[str, Value]:
    """Values of the trace; all tensors of one edge are read in one go."""
    handles: list[Any] = []
    found: dict[str, Any] = {}
    with_tensors = []
    for name, held in fields:
        value = arrived(held)
        if value.__class__ in _LEAVES:
            found[name] = value
            continue
        known = len(handles)
        found[name] = _value(value, handles)
        if len(handles) > known:
            with_tensors.append(name)
    if handles:
        rows = [tensor(row) for row in source.features(handles, _features(call, source))]
        for name in with_tensors:
            found[name] = _filled(found[name], rows)
    return found


class _TensorIndex(int):
    """The number of a tensor among those that are read."""


def _value(value: Any, handles: list[Any]) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is tuple:
        return tuple([_value(item, handles) for item in value])
    if kind is frozenset or kind is UnresolvedRef:
        return value_of(value)
    if isinstance(value, Mapping):
        return {str(key): _value(item, handles) for key, item in value.items()}
    handles.append(value)
    return _TensorIndex(len(handles) - 1)


_LEAVES = frozenset({bool, int, float, str, edges.Missing, edges.Ref})


def _filled(value: Any, rows: Sequence[model.Tensor]) -> Value:
    kind = type(value)
    if kind is _TensorIndex:
        return rows[int(value)]
    if kind is tuple:
        return tuple([_filled(item, rows) for item in value])
    if kind is dict:
        return {key: _filled(item, rows) for key, item in value.items()}
    return cast("Value", value)

"""The fields of calls: which features of the tensors among them are worth their price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tspec.builtin.events import roles_of
from tspec.record.samples import FULL, PLAIN, tensor, value_of
from tspec.runtime import edges
from tspec.runtime.edges import StateSource, UnresolvedRef, WatchedCall
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
        self._begun: dict[int, frozenset[str]] = {}
        self._unnamed: list[tuple[dict[str, Value], str, UnresolvedRef]] = []

    def at_begin(self, call: WatchedCall, source: StateSource) -> dict[str, Value]:
        """Fields that the arguments gave."""
        self._begun[call.id] = frozenset(call.fields)
        found = _values(call, call.fields, source)
        for name, value in call.fields.items():
            if isinstance(value, UnresolvedRef):
                self._unnamed.append((found, name, value))
        return found

    def name_late(self) -> None:
        """Before anything is on disk: subjects that calls gave before their names were known."""
        for fields, name, value in self._unnamed:
            fields[name] = value_of(value.named())
        self._unnamed.clear()

    def at_end(self, call: WatchedCall, source: StateSource) -> dict[str, Value]:
        """Fields that came with the result."""
        begun = self._begun.pop(call.id, frozenset())
        return _values(call, {k: v for k, v in call.fields.items() if k not in begun}, source)


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


def _is_whole(call: WatchedCall) -> bool:
    """True if the call's tensors are read in every step: it computes a loss, or its event is
    declared and no frequent inner one.
    """
    if call.event == call.callable:
        return call.callable.endswith(LOSSES)
    return not roles_of(call.event).inner


def _features(call: WatchedCall, source: StateSource) -> tuple[str, ...]:
    if _is_whole(call) or is_outermost(call):
        return (*FULL, "name") if roles_of(call.event).tensor_names else FULL
    now = source.context
    look = call.event == "forward" or call.callable.endswith(".forward")
    if look and (now.step <= 2 or (now.step % EVERY == 0 and now.phase == "train")):
        return INSIDE
    return PLAIN


def _values(call: WatchedCall, fields: Mapping[str, Any], source: StateSource) -> dict[str, Value]:
    """Values of the trace; all tensors of one edge are read in one go."""
    handles: list[Any] = []
    found = {name: _value(value, handles) for name, value in fields.items()}
    if not handles:
        return found
    rows = [tensor(row) for row in source.features(handles, _features(call, source))]
    return {name: _filled(value, rows) for name, value in found.items()}


class _TensorIndex(int):
    """The number of a tensor among those that are read."""


def _value(value: Any, handles: list[Any]) -> Any:
    kind = type(value)
    if kind in _LEAVES:
        return value_of(value)
    if kind is tuple:
        return tuple([_value(item, handles) for item in value])
    if kind is frozenset:
        return value_of(value)
    if isinstance(value, Mapping):
        return {str(key): _value(item, handles) for key, item in value.items()}
    handles.append(value)
    return _TensorIndex(len(handles) - 1)


_LEAVES = frozenset({bool, int, float, str, edges.Missing, edges.Ref, UnresolvedRef})


def _filled(value: Any, rows: Sequence[model.Tensor]) -> Value:
    kind = type(value)
    if kind is _TensorIndex:
        return rows[int(value)]
    if kind is tuple:
        return tuple([_filled(item, rows) for item in value])
    if kind is dict:
        return {key: _filled(item, rows) for key, item in value.items()}
    return cast("Value", value)

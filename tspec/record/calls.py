"""The fields of calls: which features of the tensors among them are worth their price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tspec.record.samples import FULL, PLAIN, is_plain, tensor, value_of
from tspec.runtime import edges
from tspec.runtime.edges import Call, Source
from tspec.trace import model
from tspec.trace.model import Value

INSIDE = ("digest", "norm", "finite", "zeros", "min", "max", *PLAIN)
"""Features of what flows inside of a model."""
EVERY = 10
"""Tensors inside of a model are read in the first two steps, and in every so many."""
WHOLE = frozenset(
    {
        "backward",
        "cross_entropy",
        "fetch",
        "collective",
        "all_reduce",
        "replicating",
        "all_to_all",
        "load_state_dict",
    }
)
"""Events whose tensors are read in every step."""
NAMED = frozenset({"collective", "all_reduce"})
"""Events whose tensors' own names are told."""


class CallFields:
    """Turns the fields of calls into values of the trace."""

    def __init__(self) -> None:
        self._begun: dict[int, frozenset[str]] = {}

    def at_begin(self, call: Call, source: Source) -> dict[str, Value]:
        """Fields that the arguments gave."""
        self._begun[call.id] = frozenset(call.fields)
        return _values(call, call.fields, source)

    def at_end(self, call: Call, source: Source) -> dict[str, Value]:
        """Fields that came with the result."""
        begun = self._begun.pop(call.id, frozenset())
        return _values(call, {k: v for k, v in call.fields.items() if k not in begun}, source)


def is_outermost(call: Call) -> bool:
    """The forward pass of a root: no other encloses it."""
    if call.event != "forward":
        return False
    parent = call.parent
    while parent is not None:
        if parent.event == "forward":
            return False
        parent = parent.parent
    return True


def _features(call: Call, source: Source) -> tuple[str, ...]:
    named = ("name",) if call.event in NAMED else ()
    if call.event in WHOLE or is_outermost(call):
        return (*FULL, *named)
    step = source.context.step
    return (*INSIDE, *named) if step <= 2 or step % EVERY == 0 else PLAIN


def _values(call: Call, fields: Mapping[str, Any], source: Source) -> dict[str, Value]:
    found: dict[str, Value] = {}
    handles: list[Any] = []
    for name, value in fields.items():
        if is_plain(value):
            found[name] = value_of(value)
        else:
            handles += _leaves(value)
            found[name] = model.Missing.NOT_RECORDED  # keeps the order; replaced below
    if handles:
        rows = iter([tensor(row) for row in source.features(handles, _features(call, source))])
        for name, value in fields.items():
            if not is_plain(value):
                found[name] = _filled(value, rows)
    return found


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [] if is_plain(value) else [value]


def _filled(value: Any, rows: Iterator[model.Tensor]) -> Value:
    if isinstance(value, tuple):
        return tuple(_filled(item, rows) for item in value)
    if isinstance(value, Mapping):
        return {str(key): _filled(item, rows) for key, item in value.items()}
    if isinstance(value, edges.Missing) or is_plain(value):
        return value_of(value)
    return next(rows)

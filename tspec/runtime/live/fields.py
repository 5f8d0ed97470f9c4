"""The declared fields of one event, read from one call of one callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch

from tspec.runtime.edges import Missing
from tspec.runtime.live.arguments import Parameters
from tspec.runtime.live.convert import Namer, convert, tensors_in
from tspec.runtime.live.evaluate import BadExpression, evaluate
from tspec.runtime.live.watch import EventSpec, FieldSpec

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "tensors": ("outputs",),
    "tensor": ("input_tensor", "input", "tensor", "output_tensor"),
    "output": ("output_tensor", "output", "gather_list", "tensor_list", "tensor", "object_list"),
}
"""What collectives call the tensor that they send, and the one in which the result arrives."""

Scope = Callable[[str], Any]


class Faults(Protocol):
    """Where something that could not be read is said, once."""

    def unread(self, event: str, field: str, why: str) -> None:
        """A field of an event has no value."""


class FieldReader:
    """Reads the fields of an event from calls of one callable."""

    __slots__ = ("_after", "_before", "_event", "_parameters", "_path")

    def __init__(self, event: EventSpec, path: str, parameters: Parameters) -> None:
        self._event = event.name
        self._path = path
        self._parameters = parameters
        self._before = [each for each in event.fields if not _reads_result(each, parameters)]
        self._after = [each for each in event.fields if _reads_result(each, parameters)]

    def before(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], namer: Namer, faults: Faults
    ) -> dict[str, Any]:
        """Fields that the arguments give."""
        if not self._before:
            return {}
        return self._read(self._before, self._scope(args, kwargs, None), namer, faults)

    def after(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: Any,
        namer: Namer,
        faults: Faults,
    ) -> dict[str, Any]:
        """Fields that need what the call returned."""
        if not self._after:
            return {}
        return self._read(self._after, self._scope(args, kwargs, (result,)), namer, faults)

    def of(self, values: Mapping[str, Any], namer: Namer, faults: Faults) -> dict[str, Any]:
        """All fields, from values that a mechanism has at hand instead of arguments."""
        return self._read((*self._before, *self._after), values.__getitem__, namer, faults)

    def _read(
        self,
        fields: tuple[FieldSpec, ...] | list[FieldSpec],
        scope: Scope,
        namer: Namer,
        faults: Faults,
    ) -> dict[str, Any]:
        found = {}
        for each in fields:
            try:
                found[each.name] = convert(_value(each, scope, namer), each.type, namer)
            except (
                KeyError,
                BadExpression,
                TypeError,
                ValueError,
                AttributeError,
                RuntimeError,
            ) as why:
                faults.unread(self._event, each.name, f"{type(why).__name__}: {why}")
                found[each.name] = Missing.NOT_RECORDED
        return found

    def _scope(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: tuple[Any] | None
    ) -> Scope:
        parameters = self._parameters

        def scope(name: str) -> Any:
            if name == "result" and result is not None:
                return result[0]
            try:
                return parameters.get(name, args, kwargs)
            except KeyError:
                pass
            if name == "callable":
                return self._path
            if name == "arguments":
                return parameters.plain(args, kwargs)
            if name == "inputs":
                return tensors_in((args[parameters.method :], dict(kwargs)))
            for alias in _ALIASES.get(name, ()):
                try:
                    return parameters.get(alias, args, kwargs)
                except KeyError:
                    continue
            if name == "output" and result is not None:
                return result[0]
            if parameters.method and args:
                return attribute(args[0], name)
            raise KeyError(name)

        return scope


def _value(field: FieldSpec, scope: Scope, namer: Namer) -> Any:
    if field.source is None:
        return scope(field.name)
    if field.type == ("group",) and field.source[0] == "name":
        try:
            return scope(field.source[1])
        except KeyError:  # no argument: the name of an axis
            return str(field.source[1])
    return evaluate(field.source, scope, namer.functions)


def attribute(thing: Any, name: str) -> Any:
    """An attribute of an object; an optimizer's options are those of its first group of parameters."""
    groups = getattr(thing, "param_groups", None)
    if groups and isinstance(groups, list) and isinstance(groups[0], Mapping) and name in groups[0]:
        return groups[0][name]
    if hasattr(thing, name):
        return getattr(thing, name)
    raise KeyError(name)


def _reads_result(field: FieldSpec, parameters: Parameters) -> bool:
    return field.reads_result or (field.source is None and field.name in ("output", "result"))


def first_tensor(value: Any) -> torch.Tensor | None:
    """The first tensor in nested lists, tuples and dicts."""
    found = tensors_in(value, limit=1)
    return found[0] if found else None

"""From Python objects to the values of rules, by declared type.

Tensors stay what they are (handles, of which only features are read); models, optimizers and so
on become references by canonical name; None is *absent*.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import torch

from tspec.runtime.edges import Missing, Ref, Unnamed
from tspec.runtime.live.dotted import spellings
from tspec.runtime.live.watch import TypeTree

Converter = Callable[[Any, "Namer"], Any]


class Namer(Protocol):
    """Who knows the names of subjects and the ranks of groups."""

    functions: Mapping[str, Callable[..., Any]]

    def reference(self, kind: str, thing: Any) -> Ref | None:
        """The subject that an object is, or None if it is none."""

    def ranks_of(self, group: Any) -> tuple[int, ...] | None:
        """The ranks of a process group or of an axis by name; None is the whole world."""


def convert(value: Any, kind: TypeTree, namer: Namer) -> Any:
    """A value of the type, Missing.ABSENT for None, Missing.NOT_RECORDED for what does not fit."""
    return converter(kind)(value, namer)


@cache
def converter(kind: TypeTree) -> Converter:
    """What converts to a type, made once."""
    name = kind[0]
    if name == "optional":
        return converter(kind[1])
    if name == "group":
        return _group
    inner = _inner(kind)

    def convert_one(value: Any, namer: Namer) -> Any:
        if value is None:
            return Missing.ABSENT
        return value if isinstance(value, Missing) else inner(value, namer)

    return convert_one


def _inner(kind: TypeTree) -> Converter:
    name = kind[0]
    if name == "entity":
        return lambda value, namer: _reference(value, kind[1], namer)
    if name in ("list", "set"):
        item, make = converter(kind[1]), tuple if name == "list" else frozenset
        if kind[1] == ("tensor",):
            return lambda value, namer: make(tensors_in(value))
        return lambda value, namer: make([item(each, namer) for each in _items(value)])
    if name == "map":
        held = converter(kind[2])
        return lambda value, namer: _map(value, held, namer)
    simple = _text if name == "enum" else _SIMPLE[name]
    return lambda value, namer: simple(value)


def _group(value: Any, namer: Namer) -> Any:
    ranks = namer.ranks_of(value)
    return Missing.NOT_RECORDED if ranks is None else ranks


def _reference(value: Any, kind: str, namer: Namer) -> Any:
    found = value if isinstance(value, Ref) else namer.reference(kind, value)
    if found is not None:
        return found
    if kind == "parameter" and isinstance(value, torch.Tensor) and value.is_leaf:
        held = weakref.ref(value)
        return Unnamed(lambda: None if (it := held()) is None else namer.reference(kind, it))
    return Missing.NOT_RECORDED


def tensors_in(value: Any, limit: int = 64) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples, dicts and dataclasses, in order, at most `limit`."""
    if type(value) is list and len(value) == 1 and isinstance(value[0], torch.Tensor):
        return value
    found: list[torch.Tensor] = []
    _collect(value, found, limit, 8)
    return found


def _collect(value: Any, found: list[torch.Tensor], limit: int, depth: int) -> None:
    if len(found) >= limit or depth == 0:
        return
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (str, bytes, int, float)) or value is None:
        return
    elif isinstance(value, Mapping):
        for item in value.values():
            _collect(item, found, limit, depth - 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found, limit, depth - 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for each in dataclasses.fields(value):
            _collect(getattr(value, each.name, None), found, limit, depth - 1)


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, torch.Tensor):
        listed = value.detach().tolist()
        return listed if isinstance(listed, list) else [listed]
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (int, float)):
        return [value]  # a layer may say `kernel_size=3` where others say `(3, 3)`
    return list(value)


def _map(value: Any, held: Converter, namer: Namer) -> Any:
    if not isinstance(value, Mapping):
        return Missing.NOT_RECORDED
    found = {}
    for key, item in value.items():
        converted = held(item, namer)
        if not isinstance(converted, Missing):
            found[str(key)] = converted
    return found


def _tensor(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value
    inside = tensors_in(value, limit=1)
    return inside[0] if inside else Missing.NOT_RECORDED


def _number(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def number(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.numel() != 1 or value.is_meta or not torch._C._has_storage(value):
                return Missing.NOT_RECORDED
            value = value.item()
        return make(value)

    return number


def _text(value: Any) -> Any:
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value).removeprefix("torch.")
    if isinstance(value, str):
        return value
    return str(getattr(value, "value", getattr(value, "name", value)))


def _shape(value: Any) -> Any:
    return tuple(int(size) for size in (value.shape if isinstance(value, torch.Tensor) else value))


def scalar(value: Any) -> Any:
    """A bool, int, float or string (also of numpy, and lists of them); else not recorded."""
    if value is None:
        return Missing.ABSENT
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (torch.dtype, torch.device)):
        return _text(value)
    if isinstance(value, (tuple, list)) and len(value) <= 16:
        items = tuple(scalar(item) for item in value)
        return Missing.NOT_RECORDED if any(isinstance(item, Missing) for item in items) else items
    if (
        hasattr(value, "item")
        and getattr(value, "ndim", 1) == 0
        and not isinstance(value, torch.Tensor)
    ):
        return scalar(value.item())
    return Missing.NOT_RECORDED


_SIMPLE: Mapping[str, Callable[[Any], Any]] = {
    "bool": _number(bool),
    "int": _number(int),
    "float": _number(float),
    "string": _text,
    "dtype": _text,
    "device": _text,
    "shape": _shape,
    "tensor": _tensor,
    "class": lambda value: spellings(value if isinstance(value, type) else type(value)),
    "scalar": scalar,
}

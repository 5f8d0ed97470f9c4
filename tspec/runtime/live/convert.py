"""Converts Python objects to the values of rules, by declared type.

Tensors stay handles; only their features are read. Models, optimizers and other subjects become
references by canonical name. None becomes *absent*.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Protocol, TypeAlias

import torch

from tspec.runtime.edges import Missing, Ref, UnresolvedRef
from tspec.runtime.live.features import local_part
from tspec.runtime.live.instrument.dotted import spellings
from tspec.runtime.live.watch import TypeTree
from tspec.values import Datum

Key: TypeAlias = object
"""A key, an index or the name of a field, by which a container holds a value."""
Converter = Callable[[object, "Namer"], Datum]


class Namer(Protocol):
    """Provides the names of subjects and the ranks of groups."""

    functions: Mapping[str, Callable[..., object]]

    def reference(self, kind: str, thing: object) -> Ref | None:
        """The subject that an object is, or None if it is none."""

    def ranks_of(self, group: object) -> tuple[int, ...] | None:
        """The ranks of a process group or of an axis by name; None is the whole world."""


def convert(value: object, kind: TypeTree, namer: Namer) -> Datum:
    """Convert a value to a type.

    Missing.ABSENT for None, Missing.NOT_RECORDED for a value that does not fit.
    """
    return converter(kind)(value, namer)


@cache
def converter(kind: TypeTree) -> Converter:
    """The function that converts a value to a type. It is built once for each type."""
    name = kind[0]
    if name == "optional":
        return converter(kind[1])
    if name == "group":
        return _group
    inner = _inner(kind)

    def convert_one(value: object, namer: Namer) -> Datum:
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
        return lambda value, namer: _collection(_items(value), make, item, namer)
    if name == "map":
        held = converter(kind[2])
        return lambda value, namer: _map(value, held, namer)
    simple = _text if name == "enum" else _SIMPLE[name]
    return lambda value, namer: simple(value)


def _collection(
    items: Sequence[object] | Missing,
    make: Callable[[list[Datum]], Datum],
    item: Converter,
    namer: Namer,
) -> Datum:
    return items if isinstance(items, Missing) else make([item(each, namer) for each in items])


def _group(value: object, namer: Namer) -> Datum:
    ranks = namer.ranks_of(value)
    return Missing.NOT_RECORDED if ranks is None else ranks


def _reference(value: object, kind: str, namer: Namer) -> Datum:
    found = value if isinstance(value, Ref) else namer.reference(kind, value)
    if found is not None:
        return found
    if kind == "parameter" and isinstance(value, torch.Tensor) and value.is_leaf:
        held = weakref.ref(value)
        return UnresolvedRef(lambda: None if (it := held()) is None else namer.reference(kind, it))
    return Missing.NOT_RECORDED


DEPTH = 8
"""The depth of nested containers in which tensors are searched."""
VISITED = 10_000
"""The number of values of one argument that are searched for tensors."""
ITEMS = 65_536
"""A list or set of more values is not recorded."""


def tensors_in(value: object, limit: int = 64) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples, dicts and dataclasses, in order, at most `limit`.

    Looks at the first `VISITED` values, `DEPTH` containers deep. A container that holds itself is
    not entered again.
    """
    if type(value) is list and len(value) == 1 and isinstance(value[0], torch.Tensor):
        return value
    return list(islice(_tensors(value, []), limit))


def keys_of_tensors(value: object, limit: int = 64) -> list[tuple[Key, ...]]:
    """The path to each tensor of `tensors_in`: keys, indices and fields, from the outside in. At
    most `limit` paths.
    """
    keys: list[Key] = []
    return [tuple(keys) for _ in islice(_tensors(value, keys), limit)]


def _tensors(value: object, keys: list[Key]) -> Iterator[torch.Tensor]:
    """The tensors; `keys` lead to the one that was yielded last."""
    if isinstance(value, torch.Tensor):
        yield value
        return
    inside = _held_in(value)
    if inside is None:
        return
    around, entered = [value], [inside]
    keys.append(None)
    for _ in range(VISITED):
        key, held = next(entered[-1], (None, _END))
        if held is _END:
            around.pop()
            entered.pop()
            keys.pop()
            if not entered:
                return
            continue
        keys[-1] = key
        if isinstance(held, torch.Tensor):
            yield held
        elif len(around) < DEPTH and not any(held is each for each in around):
            inside = _held_in(held)
            if inside is not None:
                around.append(held)
                entered.append(inside)
                keys.append(None)


_END = object()


def _held_in(value: object) -> Iterator[tuple[Key, object]] | None:
    """The items of a container, by key; None if `value` is no container."""
    if isinstance(value, (str, bytes, int, float)) or value is None:
        return None
    if isinstance(value, Mapping):
        return iter(value.items())
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = (each.name for each in dataclasses.fields(value))
        return ((name, getattr(value, name, None)) for name in names)
    return None


def _items(value: object) -> Sequence[object] | Missing:
    """The items of a collection; not recorded of iterators, which would be used up, and of very long ones."""
    if isinstance(value, torch.Tensor):
        local = local_part(value)
        if local is None or local.numel() > ITEMS:
            return Missing.NOT_RECORDED
        listed = local.tolist()
        return listed if isinstance(listed, list) else [listed]
    if isinstance(value, (int, float)):
        return [value]  # a layer may say `kernel_size=3` where others say `(3, 3)`
    held = value.values() if isinstance(value, Mapping) else value
    if not isinstance(held, Collection) or len(held) > ITEMS:
        return Missing.NOT_RECORDED
    return list(held)


def _map(value: object, held: Converter, namer: Namer) -> Datum:
    if not isinstance(value, Mapping):
        return Missing.NOT_RECORDED
    found = {}
    for key, item in value.items():
        converted = held(item, namer)
        if not isinstance(converted, Missing):
            found[str(key)] = converted
    return found


def _tensor(value: object) -> Datum:
    if isinstance(value, torch.Tensor):
        return value
    inside = tensors_in(value, limit=1)
    return inside[0] if inside else Missing.NOT_RECORDED


def _number(make: Callable[[Any], Datum]) -> Callable[[object], Datum]:
    """A function that converts a value, or a tensor's only element, with `make`: `int`, `float` or `bool`. It may raise what `make` raises."""

    def number(value: object) -> Datum:
        if isinstance(value, torch.Tensor):
            value = one_number(value)
        return value if isinstance(value, Missing) else make(value)

    return number


def one_number(tensor: torch.Tensor) -> bool | int | float | complex | Missing:
    """The only element of a tensor; not recorded where there is not one, or it cannot be read."""
    one = only_element(tensor)
    return Missing.NOT_RECORDED if one is None else one.item()


def only_element(tensor: torch.Tensor) -> torch.Tensor | None:
    """The local part of a tensor, if it has one element and can be read."""
    local = local_part(tensor.dequantize() if tensor.is_quantized else tensor)
    return None if local is None or local.numel() != 1 else local


def _text(value: object) -> Datum:
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value).removeprefix("torch.")
    if isinstance(value, str):
        return _plain_text(value)
    if type(value).__name__ in ("ReduceOp", "RedOpType"):
        return str(getattr(value, "op", value)).rpartition(".")[2].lower()
    if isinstance(value, (torch.Tensor, torch.nn.Module, Mapping, Collection)):
        return Missing.NOT_RECORDED
    return _plain_text(str(getattr(value, "value", getattr(value, "name", value))))


def _plain_text(value: str) -> str:
    """A text that can be encoded: half characters, as of names of files, are written as `\\udc80`."""
    return str.encode(value, "utf-8", "backslashreplace").decode()


def _shape(value: object) -> Datum:
    sizes = value.shape if isinstance(value, torch.Tensor) else value
    if not isinstance(sizes, (list, tuple)) or len(sizes) > ITEMS:
        return Missing.NOT_RECORDED
    if any(isinstance(size, torch.SymInt) for size in sizes):
        return Missing.NOT_RECORDED  # of nested tensors: each part has its own
    return tuple(int(size) for size in sizes)


def _built_in(value: bool | int | float | str) -> bool | int | float | str:
    """The value as an instance of Python's own class, because a derived class may override comparison."""
    if isinstance(value, str):
        return _plain_text(value)
    if type(value) in (bool, int, float):
        return value
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def scalar(value: object) -> Datum:
    """A bool, int, float or string (also of numpy, and short lists of them); else not recorded."""
    try:
        return _scalar(value, 3)
    except Exception:  # an object of the user's may raise anything when it is asked
        return Missing.NOT_RECORDED


def plain_values(thing: object) -> dict[str, Any]:
    """The plain public attributes that were assigned to an object, by name."""
    held = getattr(thing, "__dict__", {})
    values = {key: scalar(value) for key, value in held.items() if not key.startswith("_")}
    return {key: value for key, value in values.items() if not isinstance(value, Missing)}


def _scalar(value: object, depth: int) -> Datum:
    if value is None:
        return Missing.ABSENT
    if isinstance(value, (bool, int, float, str)):
        return _built_in(value)
    if isinstance(value, (torch.dtype, torch.device)):
        return _text(value)
    if isinstance(value, (tuple, list)) and len(value) <= 16:
        if depth == 0:
            return Missing.NOT_RECORDED
        items = tuple(_scalar(item, depth - 1) for item in value)
        return Missing.NOT_RECORDED if any(isinstance(item, Missing) for item in items) else items
    if (
        hasattr(value, "item")
        and getattr(value, "ndim", 1) == 0
        and not isinstance(value, torch.Tensor)
    ):
        return _scalar(value.item(), 0)
    return Missing.NOT_RECORDED


NUMBERS: Mapping[str, Callable[[object], Datum]] = {
    "bool": _number(bool),
    "int": _number(int),
    "float": _number(float),
}
"""The types of numbers."""

_SIMPLE: Mapping[str, Callable[[object], Datum]] = {
    **NUMBERS,
    "string": _text,
    "dtype": _text,
    "device": _text,
    "shape": _shape,
    "tensor": _tensor,
    "class": lambda value: spellings(value if isinstance(value, type) else type(value)),
    "scalar": scalar,
}

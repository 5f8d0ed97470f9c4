"""The sample of a tensor: its features at one instant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, TypeVar

from tspec.runtime.edges import Missing, Ref
from tspec.values import Datum

K = TypeVar("K")
Raw = Any
"""A field's value in a job: tensors, or torch's own containers of these, are where a `Datum` has samples."""
PLAIN = (bool, int, float, str, Missing, Ref)


class TensorSample:
    """The features of one tensor at one instant. A feature that was not read is not recorded."""

    __slots__ = ("features",)

    def __init__(self, features: Mapping[str, Datum]) -> None:
        self.features = features


@lru_cache(maxsize=4096)
def _form(kind: type) -> Literal["value", "list", "map", "handle"]:
    """The form of a class's values. It is cached for each class, as columns hold thousands of
    values.
    """
    if kind is TensorSample or issubclass(kind, (*PLAIN, frozenset)):
        return "value"
    if issubclass(kind, (tuple, list)):
        return "list"
    return "map" if issubclass(kind, dict) else "handle"


def handles(values: Iterable[Raw]) -> list[Raw]:
    """Every tensor handle in some values of fields, in order."""
    found = []
    for value in values:
        form = _form(value.__class__)
        if form == "handle":
            found.append(value)
        elif form == "list":
            found += handles(value)
        elif form == "map":
            found += handles(value.values())
    return found


def replaced(value: Raw, samples: Iterator[TensorSample]) -> Datum:
    """A field's value with the next sample in place of each handle, in the order of `handles`."""
    form = _form(value.__class__)
    if form == "value":
        return value
    if form == "handle":
        return next(samples)
    if form == "list":
        return tuple(replaced(item, samples) for item in value)
    return column_of(value, samples)


def column_of(raw: Mapping[K, Raw], samples: Iterator[TensorSample]) -> dict[K, Datum]:
    """The same for a column of values.

    Columns hold thousands of values, and most of these are plain values or one tensor.
    """
    found = {}
    for key, value in raw.items():
        form = _form(value.__class__)
        if form == "value":
            found[key] = value
        else:
            found[key] = next(samples) if form == "handle" else replaced(value, samples)
    return found


def recorded(tensor: Datum, name: str) -> Datum:
    """A feature as the source gave it (`zeros` as a count)."""
    if tensor.__class__ is TensorSample:
        return tensor.features.get(name, Missing.NOT_RECORDED)
    return tensor if tensor.__class__ is Missing else Missing.NOT_RECORDED

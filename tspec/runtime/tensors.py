"""What was read of a tensor: its features at one instant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from tspec.runtime.edges import Missing, Ref

PLAIN = (bool, int, float, str, Missing, Ref)


class TensorSample:
    """The features of one tensor at one instant; those that were not read are not recorded."""

    __slots__ = ("features",)

    def __init__(self, features: Mapping[str, Any]) -> None:
        self.features = features


@lru_cache(maxsize=4096)
def _form(kind: type) -> Literal["value", "list", "map", "handle"]:
    """What values of a class are, asked once a class: columns hold thousands of them."""
    if kind is TensorSample or issubclass(kind, (*PLAIN, frozenset)):
        return "value"
    if issubclass(kind, (tuple, list)):
        return "list"
    return "map" if issubclass(kind, dict) else "handle"


def handles(value: Any) -> Iterator[Any]:
    """Every tensor handle in a field's value, in order."""
    form = _form(value.__class__)
    if form == "handle":
        yield value
    elif form == "list":
        for item in value:
            yield from handles(item)
    elif form == "map":
        for item in value.values():
            yield from handles(item)


def replaced(value: Any, seen: Callable[[Any], Any]) -> Any:
    """A field's value with each handle replaced by what `seen` gives for it, in the order of `handles`."""
    form = _form(value.__class__)
    if form == "value":
        return value
    if form == "handle":
        return seen(value)
    if form == "list":
        return tuple(replaced(item, seen) for item in value)
    return {key: replaced(item, seen) for key, item in value.items()}


def recorded(tensor: Any, name: str) -> Any:
    """A feature as the source gave it (`zeros` as a count)."""
    if tensor.__class__ is TensorSample:
        return tensor.features.get(name, Missing.NOT_RECORDED)
    return tensor if tensor.__class__ is Missing else Missing.NOT_RECORDED

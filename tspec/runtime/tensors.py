"""What was read of a tensor: its features at one instant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tspec.runtime.edges import Missing, Ref

PLAIN = (bool, int, float, str, Missing, Ref)
_AS_THEY_ARE = frozenset(PLAIN)


class Seen:
    """The features of one tensor at one instant; those that were not read are not recorded."""

    __slots__ = ("features",)

    def __init__(self, features: Mapping[str, Any]) -> None:
        self.features = features


def handles(value: Any) -> Iterator[Any]:
    """Every tensor handle in a field's value, in order."""
    if value.__class__ in _AS_THEY_ARE or value.__class__ is Seen or isinstance(value, PLAIN):
        return
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from handles(item)
    elif isinstance(value, frozenset):
        return
    elif isinstance(value, dict):
        for item in value.values():
            yield from handles(item)
    else:
        yield value


def replaced(value: Any, seen: Callable[[Any], Any]) -> Any:
    """A field's value with each handle replaced by what `seen` gives for it, in the order of `handles`."""
    kind = value.__class__
    if kind in _AS_THEY_ARE or kind is Seen or isinstance(value, (*PLAIN, frozenset)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(replaced(item, seen) for item in value)
    if isinstance(value, dict):
        return {key: replaced(item, seen) for key, item in value.items()}
    return seen(value)


def recorded(tensor: Any, name: str) -> Any:
    """A feature as the source gave it (`zeros` as a count)."""
    if tensor.__class__ is Seen:
        return tensor.features.get(name, Missing.NOT_RECORDED)
    return tensor if tensor.__class__ is Missing else Missing.NOT_RECORDED

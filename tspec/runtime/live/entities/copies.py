"""Parameters of other models that have the same names, and of other parts of one model: those of an
average, a teacher or a target network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, combinations

Paths = Mapping[str, tuple[str, tuple[int, ...]]]
"""For one model: path in the model -> canonical name and shape of the parameter."""


def copies(models: Sequence[Paths]) -> dict[str, frozenset[str]]:
    """The canonical names of the copies of each parameter that has some.

    One model holds a copy of another if it has all of the other's parameters, of the same shapes, under
    one prefix, as `module.` of a wrapper. Several prefixes, as of alike layers, tell nothing.
    """
    found: dict[str, set[str]] = {}
    for one in models:
        for other in models:
            prefix = None if one is other else _prefix(one, other)
            if prefix is None:
                continue
            for path, (name, _) in one.items():
                _pair(found, name, other[prefix + path][0])
    return {name: frozenset(names) for name, names in found.items()}


def counterparts(models: Sequence[Paths]) -> dict[str, frozenset[str]]:
    """The canonical names of the parameters at the same place in parts of a model that are alike.

    Parts are the attributes of one module, such as `encoder_q` and `encoder_k`. They are alike if
    their parameters have the same paths and shapes, and are layers of several modules. The numbered
    layers of a list are left out.
    """
    found: dict[str, set[str]] = {}
    beside = chain.from_iterable(_parts(model).values() for model in models)
    for one, other in chain.from_iterable(combinations(parts.values(), 2) for parts in beside):
        if _shapes(one) == _shapes(other):
            for path, (name, _) in one.items():
                _pair(found, name, other[path][0])
    return {name: frozenset(names) for name, names in found.items()}


def _parts(model: Paths) -> dict[str, dict[str, dict[str, tuple[str, tuple[int, ...]]]]]:
    """Path of a module -> attribute -> the parameters in that attribute, for attributes of several modules."""
    found: dict[str, dict[str, dict[str, tuple[str, tuple[int, ...]]]]] = {}
    for path, held in model.items():
        names = path.split(".")
        for at in range(len(names) - 2):
            if not names[at].isdigit():
                parent, rest = ".".join(names[:at]), ".".join(names[at + 1 :])
                found.setdefault(parent, {}).setdefault(names[at], {})[rest] = held
    return found


def _pair(found: dict[str, set[str]], one: str, other: str) -> None:
    """Note that two parameters belong to each other; one parameter under two names does not."""
    if one != other:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)


def _shapes(part: Paths) -> dict[str, tuple[int, ...]]:
    return {path: shape for path, (_, shape) in part.items()}


def _prefix(one: Paths, other: Paths) -> str | None:
    """The prefix under which the other model has all parameters of one; None for no prefix, or
    several.
    """
    first = next(iter(one), None)
    if first is None or len(other) < len(one):
        return None
    ends = [path for path in other if path == first or path.endswith(f".{first}")]
    prefixes = [path.removesuffix(first) for path in ends]
    fitting = [prefix for prefix in prefixes if _has(other, prefix, one)]
    return fitting[0] if len(fitting) == 1 else None


def _has(other: Paths, prefix: str, one: Paths) -> bool:
    return all(
        prefix + path in other and other[prefix + path][1] == shape
        for path, (_, shape) in one.items()
    )

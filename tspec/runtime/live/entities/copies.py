"""Parameters of other models that have the same names: those of an average, a teacher or a target
network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
                copy = other[prefix + path][0]
                if copy != name:
                    found.setdefault(name, set()).add(copy)
                    found.setdefault(copy, set()).add(name)
    return {name: frozenset(names) for name, names in found.items()}


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

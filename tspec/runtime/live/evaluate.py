"""The value of an expression in a user's event for one call: `result.shape[1]`, `count(text)`,
`names(obj)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tspec.runtime.live.watch import Expression


class ExpressionError(Exception):
    """The expression has no value for this call; the message says why."""


class NothingThereError(ExpressionError):
    """The expression reads a field of None: the call has, or returned, nothing of the kind."""


Functions = Mapping[str, Callable[..., Any]]
"""All functions that may be called, `FUNCTIONS` among them."""
Evaluator = Callable[[Any, Functions], Any]
"""Gives an expression's value for one call, or whatever its names are read from. Raises ExpressionError where there is
no value.
"""
NameReader = Callable[[str], Callable[[Any], Any]]
"""Gives, for a name, the function that reads it from a call. That function raises KeyError where the call has none."""


def compiled(expression: Expression, names: NameReader) -> Evaluator:
    """The function that evaluates a tree of literals. It is made once, and the tree is not walked again."""
    value = _value(expression, names)

    def evaluator(call: Any, functions: Functions) -> Any:
        try:
            return value(call, functions)
        except ExpressionError:
            raise
        except Exception as fault:  # the user's objects answer, and may raise anything
            raise ExpressionError(f"{type(fault).__name__}: {fault}") from fault

    return evaluator


def _value(tree: Expression, names: NameReader) -> Evaluator:
    kind = tree[0]
    if kind == "literal":
        literal = tree[1]
        return lambda call, functions: literal
    if kind == "name":
        read = names(tree[1])
        return lambda call, functions: read(call)
    if kind == "list":
        items = [_value(item, names) for item in tree[1]]
        return lambda call, functions: [item(call, functions) for item in items]
    if kind == "field":
        base, name = _value(tree[1], names), tree[2]
        return lambda call, functions: _field(base(call, functions), name)
    if kind == "negate":
        base = _value(tree[1], names)
        return lambda call, functions: -base(call, functions)
    if kind == "call":
        return _call(tree, names)
    left, right = _value(tree[1], names), _value(tree[2], names)
    if kind == "index":
        return lambda call, functions: left(call, functions)[right(call, functions)]
    operator = _ARITHMETIC[kind]
    return lambda call, functions: operator(left(call, functions), right(call, functions))


def _call(tree: Expression, names: NameReader) -> Evaluator:
    name = tree[1]
    arguments = [_value(item, names) for item in tree[2]]
    named = {key: _value(item, names) for key, item in tree[3]}

    def value(call: Any, functions: Functions) -> Any:
        function = functions.get(name)
        if function is None:
            raise ExpressionError(f"there is no function {name}")
        given = [each(call, functions) for each in arguments]
        if not named:
            return function(*given)
        return function(*given, **{key: each(call, functions) for key, each in named.items()})

    return value


_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def _field(value: Any, name: str) -> Any:
    """An attribute, or the value under that key of a mapping."""
    if hasattr(value, name):
        return getattr(value, name)
    if isinstance(value, Mapping) and name in value:
        return value[name]
    error = NothingThereError if value is None else ExpressionError
    raise error(f"{type(value).__name__} has no {name}")


def _count(value: Any) -> int:
    """The number of elements: the length, 1 for a single text, 0 for None."""
    if value is None:
        return 0
    return 1 if isinstance(value, str) else len(value)


def _total(value: Any, dim: int | None = None) -> Any:
    if hasattr(value, "sum"):
        return value.sum() if dim is None else value.sum(dim)
    return sum(value)


def _largest(value: Any, *others: Any) -> Any:
    if others:
        return max(value, *others)
    return value.max() if hasattr(value, "max") else max(value)


def _smallest(value: Any, *others: Any) -> Any:
    if others:
        return min(value, *others)
    return value.min() if hasattr(value, "min") else min(value)


def _exponential(value: Any) -> Any:
    """e to the power of a number, or of each element of a tensor."""
    return value.detach().exp() if hasattr(value, "detach") else math.exp(value)


def names(value: Any, depth: int = 6) -> frozenset[str]:
    """Keys of the tensors in a saved object, without their common prefix.

    `{"model": model.state_dict(), "epoch": 3}` gives the keys of the state dict. A module gives the
    keys of its own state dict.
    """
    keys = _tensor_keys(value, "", depth)
    models = {key for key in keys if not _of_optimizer(key)} or keys
    prefix = _shared_prefix(models)
    return frozenset(key[len(prefix) :] for key in models)


def _of_optimizer(key: str) -> bool:
    return "/state/" in f"/{key}" or key.startswith("param_groups/")


def _tensor_keys(value: Any, path: str, depth: int) -> set[str]:
    if hasattr(value, "state_dict") and hasattr(value, "named_modules"):
        value = value.state_dict()
    if isinstance(value, Mapping):
        found: set[str] = set()
        for key, item in value.items():
            if depth > 0:
                found |= _tensor_keys(item, f"{path}{key}/", depth - 1)
        return found
    is_tensor = hasattr(value, "dtype") and hasattr(value, "storage_offset")
    return {path.rstrip("/")} if is_tensor and path else set()


def _shared_prefix(keys: set[str]) -> str:
    """The part up to the last slash that all keys begin with, and wrappers' prefixes."""
    heads = {key.rsplit("/", 1)[0] + "/" if "/" in key else "" for key in keys}
    prefix = heads.pop() if len(heads) == 1 else ""
    for wrapper in ("module.", "_orig_mod."):
        if keys and all(key.startswith(prefix + wrapper) for key in keys):
            prefix += wrapper
    return prefix


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "count": _count,
    "names": names,
    "sum": _total,
    "min": _smallest,
    "max": _largest,
    "abs": abs,
    "round": round,
    "sqrt": math.sqrt,
    "ceil": math.ceil,
    "floor": math.floor,
    "log": math.log,
    "exp": _exponential,
}

"""The argument that a name stands for in one call, defaults of the signature included."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch.nn._reduction import legacy_get_string

from tspec.runtime.live.convert import keys_of_tensors
from tspec.values import Datum

_BUILTIN_PARAMETERS = {
    "matmul": ("input", "other"),
    "mm": ("input", "mat2"),
    "bmm": ("input", "mat2"),
    "softmax": ("input", "dim", "dtype"),
    "log_softmax": ("input", "dim", "dtype"),
    "clamp": ("input", "min", "max"),
    "log_sigmoid": ("input",),
    "linear": ("input", "weight", "bias"),
    "conv1d": ("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    "conv2d": ("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    "conv3d": ("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    "normal": ("mean", "std", "generator"),
    "scaled_dot_product_attention": (
        "query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale",
    ),
}  # fmt: skip
"""Builtins have no signature that `inspect` could read; these are the documented ones."""

_BUILTIN_DEFAULTS = {
    "scaled_dot_product_attention": {"dropout_p": 0.0, "is_causal": False, "attn_mask": None},
}


class CallSignature:
    """The parameters of one callable, read once, so that `get(name, args, kwargs)` is cheap."""

    __slots__ = ("_defaults", "_first_star", "_keywords", "_positions", "_star", "_stars", "method")

    def __init__(self, function: Callable[..., Any], method: bool) -> None:
        self._positions: dict[str, int] = {}
        self._defaults: dict[str, Any] = {}
        self._keywords: set[str] = set()
        self._star: str | None = None
        self._first_star = 0
        self._stars: str | None = None
        self._read(function)
        self.method = method or next(iter(self._positions), "") == "self"

    def _read(self, function: Callable[..., Any]) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            name = getattr(function, "__name__", "")
            names = _BUILTIN_PARAMETERS.get(name, ())
            self._positions = {each: index for index, each in enumerate(names)}
            self._defaults = dict(_BUILTIN_DEFAULTS.get(name, {}))
            self._keywords = set(self._defaults)
            return
        for index, parameter in enumerate(parameters):
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._star, self._first_star = parameter.name, index
                continue
            if parameter.kind is parameter.VAR_KEYWORD:
                self._stars = parameter.name
                continue
            if parameter.kind is parameter.KEYWORD_ONLY:
                self._keywords.add(parameter.name)
            else:
                self._positions[parameter.name] = index
            if parameter.default is not parameter.empty:
                self._defaults[parameter.name] = parameter.default

    def has(self, name: str) -> bool:
        """True if the callable has a parameter of that name."""
        return (
            name in self._positions or name in self._keywords or name in (self._star, self._stars)
        )

    def get(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The value of a named argument. Raises KeyError if the call has none.

        The `reduction` of a loss is what the deprecated `size_average` and `reduce` say, if one is given.
        """
        if name == "reduction" and self.has("size_average"):
            average, reduce = (self.get(each, args, kwargs) for each in ("size_average", "reduce"))
            if average is not None or reduce is not None:
                return legacy_get_string(average, reduce, emit_warning=False)
        if name in kwargs:
            return kwargs[name]
        position = self._positions.get(name)
        if position is not None and position < len(args):
            return args[position]
        if name == self._star:
            return args[self._first_star :]
        if name == self._stars:
            return {each: value for each, value in kwargs.items() if not self.has(each)}
        if name == "self" and self.method and args:
            return args[0]
        return self._defaults[name]

    def plain(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Datum]:
        """Name and value of all arguments that are numbers, strings or booleans."""
        bound = dict(self._defaults)
        # Positions are in the order of the parameters. The rest is named, left out or `*args`.
        bound.update(zip(self._positions, args, strict=False))
        bound.update(kwargs)
        return {
            key: value for key, value in bound.items() if isinstance(value, (bool, int, float, str))
        }


def input_names(module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """The parameter name of each tensor that a module's `forward` gets, as `memory`, or `states.0`
    within a list.

    Names are the same for arguments by position and by name. A `forward` that is not written in
    Python has numbers for arguments by position.
    """
    named = _by_position(module.forward) if args else ()
    found = []
    for first, second, *more in keys_of_tensors((args, kwargs)):
        if first == 0 and isinstance(second, int) and second < len(named):
            second = named[second]
        found.append(".".join(map(str, (second, *more))))
    return tuple(found)


def _by_position(forward: Any) -> tuple[str, ...]:
    """The parameters that a method has by position, without its own object."""
    code = getattr(inspect.unwrap(forward), "__code__", None)
    if code is None:
        return ()
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    return names[1:] if inspect.ismethod(forward) else names

"""Watching a Python function without replacing it: the object stays, only its code is exchanged.

So every name, default argument, bound method and pickle that refers to the function still refers
to the same object, and calls through any of them are seen.
"""

from __future__ import annotations

import builtins
import inspect
import itertools
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType
from typing import Any

_NUMBERS = itertools.count()


class Swapped:
    """A function whose calls go to `into`; `original` is a copy that still does what it did."""

    __slots__ = ("_code", "_name", "_signed", "function", "original")

    def __init__(self, function: FunctionType, into: Callable[[FunctionType], Any]) -> None:
        self.function = function
        self._code = function.__code__
        self.original = _copy(function)
        self._name = f"__tspec_{next(_NUMBERS)}__"
        setattr(builtins, self._name, into(self.original))
        self._signed = _keep_signature(function)
        function.__code__ = _trampoline(self._code, self._name)

    def restore(self) -> None:
        """Give the function its own code back, unless somebody exchanged it again."""
        if self._name in self.function.__code__.co_names:
            self.function.__code__ = self._code
        if self._signed:
            del self.function.__signature__  # type: ignore[attr-defined]
        delattr(builtins, self._name)


def _copy(function: FunctionType) -> FunctionType:
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__dict__.update(function.__dict__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    return copy


def _keep_signature(function: FunctionType) -> bool:
    """Without this, `inspect.signature` would read the exchanged code."""
    if "__wrapped__" in function.__dict__ or "__signature__" in function.__dict__:
        return False
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    function.__signature__ = signature  # type: ignore[attr-defined]
    return True


def _trampoline(code: CodeType, name: str) -> CodeType:
    """Code that hands all arguments to the builtin `name`, with the free variables of `code`."""
    template = _template(code.co_freevars)
    names = tuple(name if each == "__tspec_target__" else each for each in template.co_names)
    return template.replace(
        co_names=names,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )


@cache
def _template(free: tuple[str, ...]) -> CodeType:
    uses = "".join(f"        {variable}\n" for variable in free)
    text = (
        f"def outer({', '.join(free)}):\n"
        "    def call(*args, **kwargs):\n"
        "        return __tspec_target__(*args, **kwargs)\n"
        f"{uses}"
        "    return call\n"
    )
    namespace: dict[str, Any] = {}
    exec(compile(text, "<tspec>", "exec"), namespace)
    outer = namespace["outer"]
    code: CodeType = outer(*(None for _ in free)).__code__
    if code.co_freevars != free:
        raise ValueError(f"no code with the free variables {free}")
    return code

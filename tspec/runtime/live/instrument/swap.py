"""Taking the calls of a Python function without replacing it: the object stays, its code is exchanged.

Every name, default argument, bound method and pickle that refers to the function still refers to
the same object, so calls through any of them are taken. The new code has the parameters, variables,
name, file and first line of the old one.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

PREFIX = "__tspec_"
"""The prefix of names that only exchanged code refers to."""

_RUNS_LATER = (
    inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
    | inspect.CO_ITERABLE_COROUTINE
)
"""Flags of code whose call returns before the body runs. Its replacement runs at once and returns
what the original returns.
"""


class ExchangedCode:
    """Redirects the calls of a function; `target` is a copy with the original code.

    `number` is unique in the process: the builtin that the new code calls is named by it.

    Raises ValueError for a function whose parameters cannot be written as source text.
    """

    __slots__ = ("_code", "_name", "function", "target", "trampoline")

    def __init__(self, function: FunctionType, number: int) -> None:
        self.function = function
        self.target = _copy(function)
        self._code = function.__code__
        self._name = f"{PREFIX}{number}__"
        self.trampoline = _trampoline(self._code, self._name)

    def direct(self, entry: Callable[..., Any]) -> None:
        """Send calls to `entry` from now on."""
        setattr(builtins, self._name, entry)
        if self.function.__code__ is self._code:
            self.function.__code__ = self.trampoline

    def restore(self) -> None:
        """Give the function its own code back, unless other code has exchanged it again."""
        if self.function.__code__ is self.trampoline:
            self.function.__code__ = self._code

    def forget(self) -> None:
        """Remove the builtin name through which the new code finds its target.

        No thread may be about to read it.
        """
        if hasattr(builtins, self._name):
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


def _trampoline(code: CodeType, name: str) -> CodeType:
    """Code with the parameters of `code` that hands them all to the builtin `name`."""
    declared, given = _parameters(code)
    outer, inner, free = f"{PREFIX}outer__", f"{PREFIX}inner__", code.co_freevars
    text = (
        f"def {outer}({', '.join(free)}):\n"
        f"    def {inner}({declared}): return {name}({given}){''.join(f'; {each}' for each in free)}\n"
        f"    return {inner}\n"
    )
    namespace: dict[str, Any] = {}
    try:
        exec(compile(text, "<tspec>", "exec", dont_inherit=True), namespace)
    except SyntaxError as fault:
        raise ValueError(f"no code with the parameters ({declared})") from fault
    made: CodeType = namespace[outer](*(None for _ in free)).__code__
    if made.co_freevars != free:
        raise ValueError(f"no code with the free variables {free}")
    return made.replace(
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_varnames=code.co_varnames,
        co_nlocals=code.co_nlocals,
        co_flags=code.co_flags & ~_RUNS_LATER,
    )


def _parameters(code: CodeType) -> tuple[str, str]:
    """The parameters as they are declared, and as they are handed on."""
    names = code.co_varnames
    positional = names[: code.co_argcount]
    rest = iter(names[code.co_argcount :])
    only = [next(rest) for _ in range(code.co_kwonlyargcount)]
    star = next(rest) if code.co_flags & inspect.CO_VARARGS else None
    stars = next(rest) if code.co_flags & inspect.CO_VARKEYWORDS else None
    held = [*positional, *only, *filter(None, (star, stars))]
    if not all(each.isidentifier() and not keyword.iskeyword(each) for each in held):
        raise ValueError(f"no code with the parameters {held}")
    declared: list[str] = list(positional)
    if code.co_posonlyargcount:
        declared.insert(code.co_posonlyargcount, "/")
    if star is not None or only:
        declared.append(f"*{star or ''}")
    declared += only
    given = [*positional, *([f"*{star}"] if star else []), *(f"{each}={each}" for each in only)]
    # Each default is a placeholder: the function object, not its code, decides which parameters
    # have one.
    for each in [declared, given]:
        each += [f"**{stars}"] if stars else []
    return ", ".join(declared), ", ".join(given)

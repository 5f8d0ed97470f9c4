"""Options that several commands share, as one value: `@spread` makes its fields a command's options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose options are the fields of its dataclass parameters.

    Two dataclasses of one command must not have fields of the same name. Fields need defaults;
    fields with `metadata={"option": False}` are no options. A value with a method `settled` is
    replaced by its result before the command begins.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, tuple[type[Any], tuple[str, ...]]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if is_dataclass(kind) and isinstance(kind, type):
            options = _options(kind)
            groups[name] = kind, tuple(option.name for option in options)
            parameters += options
        else:
            parameters.append(parameter.replace(annotation=kind))

    @wraps(command)
    def called(**given: Any) -> None:
        for name, (kind, names) in groups.items():
            value = kind(**{each: given.pop(each) for each in names})
            given[name] = value.settled() if hasattr(kind, "settled") else value
        command(**given)

    required = [each for each in parameters if each.default is inspect.Parameter.empty]
    others = [each for each in parameters if each.default is not inspect.Parameter.empty]
    called.__dict__["__signature__"] = inspect.Signature([*required, *others])
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    del called.__dict__["__wrapped__"]
    return called


def _options(kind: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in fields(kind):
        if not field.metadata.get("option", True):
            continue
        if field.default is MISSING:
            raise TypeError(f"{kind.__name__}.{field.name} has no default")
        found.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=field.default,
                annotation=hints[field.name],
            )
        )
    return found

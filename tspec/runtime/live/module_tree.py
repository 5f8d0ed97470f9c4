"""The modules that a module holds, without the wrappers around them: DDP, FSDP, `torch.compile` and the like.

Reads the instances' own tables: a user's class may override `parameters`, `children` and `__getattr__`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import nn

_INNER = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "module")
_WRAPPERS = {
    "DistributedDataParallel", "DataParallel", "OptimizedModule", "FullyShardedDataParallel",
    "CheckpointWrapper", "ActivationWrapper", "OffloadWrapper", "Float16Module",
}  # fmt: skip


def inner(module: nn.Module) -> nn.Module | None:
    """The module that a wrapper wraps, or None if `module` is no wrapper."""
    if not _wraps(type(module)):  # type: ignore[arg-type]
        return None
    for name in _INNER:
        held: nn.Module | None = table(module, "_modules").get(name)
        if held is not None:
            return held
    return None


def table(
    module: nn.Module, name: Literal["_modules", "_parameters", "_buffers"]
) -> Mapping[str, Any]:
    """One of a module's own tables, empty before `nn.Module.__init__` has run.

    Reads the instance dictionary: a class may override `parameters` and `__getattr__`, which may
    fail before its own constructor has returned. That of a scripted module is no mapping: it has `items` and `values`.
    """
    found: Mapping[str, Any] | None = vars(module).get(name)
    return {} if found is None else found


def parameters_of(module: nn.Module) -> Iterator[torch.Tensor]:
    """The parameters of a module and all modules in it, each under every name that it has."""
    for _, held in walk(module):
        for parameter in table(held, "_parameters").values():
            if parameter is not None:
                yield parameter


def has_parameters(module: nn.Module) -> bool:
    """The module or one in it holds a parameter."""
    return next(parameters_of(module), None) is not None


def trains(module: nn.Module) -> bool:
    """The module is in training mode; one that does not say is, as torch's are by default."""
    try:
        return bool(module.training)
    except Exception:  # a property of the user's class may raise anything
        return True


@lru_cache(maxsize=4096)
def _wraps(kind: type) -> bool:
    return any(base.__name__ in _WRAPPERS for base in kind.__mro__[:-1])


def unwrapped(module: nn.Module) -> nn.Module:
    """The module inside all wrappers around it."""
    held = inner(module)
    while held is not None:
        module, held = held, inner(held)
    return module


def walk(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Every module under all its names, wrappers left out, parents first.

    A module that lies in itself is not entered again.
    """
    module = unwrapped(module)
    yield "", module
    around = {id(module)}
    entered = [("", module, iter(table(module, "_modules").items()))]
    while entered:
        prefix, module, children = entered[-1]
        for name, child in children:
            if child is None:
                continue
            child = unwrapped(child)
            if id(child) in around:
                continue
            path = f"{prefix}{name}"
            yield path, child
            around.add(id(child))
            entered.append((f"{path}.", child, iter(table(child, "_modules").items())))
            break
        else:
            around.discard(id(module))
            entered.pop()

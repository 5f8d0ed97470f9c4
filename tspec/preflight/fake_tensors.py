"""Tensors with a shape and no elements, so that a model takes neither memory nor time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed.fsdp  # it has `init_device_mesh` under its name
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.distributed import device_mesh
from torch.distributed.pipelining import schedules

OF_MESHES = (
    "__init__",
    "__getitem__",
    "get_coordinate",
    "get_local_rank",
    "_flatten",
    "_unflatten",
)
"""Methods that read the numbers of ranks, which are real tensors."""


@contextmanager
def fake_tensors() -> Iterator[None]:
    """All tensors that are made inside are fake.

    Not those of device meshes, which hold numbers of ranks, nor the votes of pipeline stages, which
    decide by a number whether stages tell each other the shapes of their tensors.
    """
    mesh = device_mesh.DeviceMesh
    begin = _really(device_mesh.init_device_mesh)
    with ExitStack() as stack:
        for name in OF_MESHES:
            if hasattr(mesh, name):
                stack.enter_context(patch.object(mesh, name, _really(getattr(mesh, name))))
        for module in _with_function("init_device_mesh", device_mesh.init_device_mesh):
            stack.enter_context(patch.object(module, "init_device_mesh", begin))
        stack.enter_context(patch.object(nn.Module, "_apply", _converting(nn.Module._apply)))
        votes = vars(schedules)["_PipelineSchedule"]
        stack.enter_context(patch.object(votes, "_warmup_p2p", _really(votes._warmup_p2p)))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        yield


def _with_function(name: str, function: Callable[..., Any]) -> list[ModuleType]:
    """The modules of torch that have a function under its name, as `fully_shard` has for its default mesh."""
    of_torch = (each for path, each in sys.modules.items() if path.partition(".")[0] == "torch")
    return [each for each in of_torch if vars(each).get(name) is function]


def _converting(apply: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """`nn.Module._apply`, which `to` calls, so that fake parameters keep their identity where real ones do.

    Torch swaps them for others, which it cannot do with tensors that have weak references: the mode keeps one of each.
    """

    @wraps(apply)
    def applied(self: nn.Module, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        held = {name: each for name, each in self._parameters.items() if each is not None}
        if not all(isinstance(each, FakeTensor) for each in held.values()):
            return apply(self, fn, recurse)
        for module in self.children() if recurse else ():
            getattr(module, apply.__name__)(fn)  # it may be a class's own
        for name, each in held.items():
            self._parameters[name] = _converted(each, fn)
        for name, buffer in self._buffers.items():
            self._buffers[name] = None if buffer is None else fn(buffer)
        return self

    return applied


def _converted(parameter: nn.Parameter, fn: Callable[[Tensor], Tensor]) -> nn.Parameter:
    """The result of a function on a parameter: the same object with other data, or a new one on
    another device.
    """
    with torch.no_grad():
        made = fn(parameter)
        gradient = None if parameter.grad is None else fn(parameter.grad)
    if made.device != parameter.device:
        parameter = nn.Parameter(made, parameter.requires_grad)
    elif made is not parameter:
        parameter.grad = None
        parameter.data = made
    parameter.grad = gradient
    return parameter


def _really(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes real tensors."""

    @wraps(function)
    def real(*arguments: Any, **options: Any) -> Any:
        with unset_fake_temporarily():
            return function(*arguments, **options)

    return real

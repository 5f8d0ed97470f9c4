"""Tensors with a shape and no elements, so that a model takes neither memory nor time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.distributed import device_mesh

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
    """All tensors that are made inside are fake; device meshes, which hold numbers of ranks, are not."""
    mesh = device_mesh.DeviceMesh
    begin = _really(device_mesh.init_device_mesh)
    with ExitStack() as stack:
        for name in OF_MESHES:
            if hasattr(mesh, name):
                stack.enter_context(patch.object(mesh, name, _really(getattr(mesh, name))))
        for module in (device_mesh, dist):
            stack.enter_context(patch.object(module, "init_device_mesh", begin))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        yield


def _really(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes real tensors."""

    @wraps(function)
    def real(*arguments: Any, **options: Any) -> Any:
        with unset_fake_temporarily():
            return function(*arguments, **options)

    return real

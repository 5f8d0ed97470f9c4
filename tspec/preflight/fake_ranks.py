"""A process group of any size in one process: collectives return at once, and values are not exchanged."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, NoReturn
from unittest.mock import patch

import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.nn.parallel import distributed as data_parallel

RECEIVING = ("recv_object_list", "broadcast_object_list", "scatter_object_list")
"""Functions that give a rank objects of another one."""


@contextmanager
def fake_ranks(rank: int, world: int, waits: Callable[[str], NoReturn]) -> Iterator[None]:
    """The environment that torchrun gives, and process groups without other processes.

    A script gets torch's `fake` backend, whichever it asks for. DDP's verification between ranks at
    its start is left out. `waits` is called with the name of a function that needs an object of
    another rank.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    real = dist.init_process_group

    def begin(*arguments: Any, **options: Any) -> None:
        real("fake", store=FakeStore(), rank=rank, world_size=world)

    def group(
        ranks: Any = None, timeout: Any = None, backend: Any = None, settings: Any = None,
        *arguments: Any, **options: Any,
    ) -> Any:  # fmt: skip
        return new_group(ranks, timeout, None, None, *arguments, **options)

    new_group = vars(distributed_c10d)["_new_group_with_tag"]
    environment = {
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",
    }
    nothing = lambda *arguments, **options: None  # noqa: E731
    with (
        ExitStack() as receiving,
        patch.dict(os.environ, environment),
        patch.object(dist, "init_process_group", begin),
        patch.object(distributed_c10d, "init_process_group", begin),
        patch.object(distributed_c10d, "_new_group_with_tag", group),
        patch.object(data_parallel, "_verify_param_shape_across_processes", nothing),
        patch.object(data_parallel, "_sync_module_states", nothing),
    ):
        for name in RECEIVING:
            instead = _waiting(getattr(dist, name), rank, waits)
            receiving.enter_context(patch.object(dist, name, instead))
            receiving.enter_context(patch.object(distributed_c10d, name, instead))
        yield


def _waiting(
    function: Callable[..., Any], rank: int, waits: Callable[[str], NoReturn]
) -> Callable[..., Any]:
    """A function that returns only if this rank is the one that sends."""
    signature = inspect.signature(function)

    @wraps(function)
    def received(*arguments: Any, **options: Any) -> Any:
        given = signature.bind(*arguments, **options).arguments
        source, of_group = given.get("src"), given.get("group_src")
        if of_group is not None and given.get("group") is not None:
            source = dist.get_global_rank(given["group"], of_group)
        elif of_group is not None:
            source = of_group
        default = None if function.__name__ == "recv_object_list" else 0
        if (default if source is None else source) != rank:
            waits(function.__name__)
        return function(*arguments, **options)

    return received

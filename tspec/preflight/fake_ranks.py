"""A process group of any size in one process: collectives return at once, and values are not exchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.nn.parallel import distributed as data_parallel


@contextmanager
def fake_ranks(rank: int, world: int) -> Iterator[None]:
    """The environment that torchrun gives, and process groups without other processes.

    A script gets torch's `fake` backend, whichever it asks for. DDP's verification between ranks at
    its start is left out.
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
        patch.dict(os.environ, environment),
        patch.object(dist, "init_process_group", begin),
        patch.object(distributed_c10d, "init_process_group", begin),
        patch.object(distributed_c10d, "_new_group_with_tag", group),
        patch.object(data_parallel, "_verify_param_shape_across_processes", nothing),
        patch.object(data_parallel, "_sync_module_states", nothing),
    ):
        yield

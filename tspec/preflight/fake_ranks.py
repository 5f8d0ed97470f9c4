"""A process group of any size in one process: collectives return at once, and tensors are not exchanged.

Objects are: the process of another rank writes them, if one runs.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.distributed import distributed_c10d
from torch.nn.parallel import distributed as data_parallel

from tspec.preflight.objects import Objects

_CPU = torch.device("cpu")


@contextmanager
def fake_ranks(rank: int, world: int, objects: Objects) -> Iterator[None]:
    """The environment that torchrun gives, and process groups without other processes.

    A script gets torch's `fake` backend, whichever it asks for. DDP's verification between ranks at
    its start is left out. Lists of objects come from the rank that sends them.
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
        ExitStack() as exchanging,
        patch.dict(os.environ, environment),
        patch.object(dist, "init_process_group", begin),
        patch.object(distributed_c10d, "init_process_group", begin),
        patch.object(distributed_c10d, "_new_group_with_tag", group),
        patch.object(data_parallel, "_verify_param_shape_across_processes", nothing),
        patch.object(data_parallel, "_sync_module_states", nothing),
    ):
        for name, instead in _exchanged(rank, objects).items():
            exchanging.enter_context(patch.object(dist, name, instead))
            exchanging.enter_context(patch.object(distributed_c10d, name, instead))
        yield


def _exchanged(rank: int, objects: Objects) -> dict[str, Callable[..., Any]]:
    """The functions of `torch.distributed` that send lists of objects from one rank to others."""
    made: Counter[str] = Counter()

    def numbered(pair: str) -> str:
        """A key that both sides have: they send and receive in one order."""
        made[pair] += 1
        return f"{pair}-{made[pair]}"

    def send_object_list(
        object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None,
        group_dst: int | None = None, use_batch: bool = False,
    ) -> None:  # fmt: skip
        key = numbered(f"send-{rank}-{_peer(dst, group, group_dst)}")
        objects.send(key, _bytes_of(object_list))

    def recv_object_list(
        object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
        group_src: int | None = None, use_batch: bool = False,
    ) -> int | None:  # fmt: skip
        source = _peer(src, group, group_src)
        object_list[:] = _object_of(objects.receive(numbered(f"send-{source}-{rank}"), source))
        return source

    def broadcast_object_list(
        object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
        group_src: int | None = None,
    ) -> None:  # fmt: skip
        object_list[:] = from_one("broadcast", object_list, src, group, group_src)

    def scatter_object_list(
        scatter_object_output_list: list[Any],
        scatter_object_input_list: list[Any] | None = None,
        src: int | None = None,
        group: Any = None,
        group_src: int | None = None,
    ) -> None:
        all_of_them = from_one("scatter", scatter_object_input_list, src, group, group_src)
        scatter_object_output_list[0] = all_of_them[dist.get_rank(group)]

    def from_one(
        what: str, mine: list[Any] | None, src: int | None, group: Any, group_src: int | None
    ) -> list[Any]:
        """The list of the source's, which it writes."""
        source = _peer(src, group, group_src) or 0
        ranks = dist.get_process_group_ranks(dist.group.WORLD if group is None else group)
        of = hashlib.sha256(repr(ranks).encode()).hexdigest()[:16]
        key = numbered(f"{what}-{source}-{of}")
        if source != rank:
            received: list[Any] = _object_of(objects.receive(key, source))
            return received
        objects.send(key, _bytes_of(mine))
        return mine or []

    functions = send_object_list, recv_object_list, broadcast_object_list, scatter_object_list
    return {each.__name__: each for each in functions}


def _bytes_of(value: Any) -> bytes:
    """An object as torch sends it to another rank."""
    with unset_fake_temporarily():
        content, _ = vars(distributed_c10d)["_object_to_tensor"](value, _CPU, None)
        return bytes(content.numpy())


def _object_of(content: bytes) -> Any:
    """The object that torch makes of what another rank sent."""
    with unset_fake_temporarily():
        received = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        return vars(distributed_c10d)["_tensor_to_object"](received, len(content), None)


def _peer(rank: int | None, group: Any, group_rank: int | None) -> int | None:
    """The other rank's number in the world, which may be given as its number in the group."""
    if group_rank is None or group is None:
        return group_rank if rank is None else rank
    return int(dist.get_global_rank(group, group_rank))

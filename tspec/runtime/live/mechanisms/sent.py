"""Follows what this rank gives to collectives and messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.distributed as dist

from tspec.runtime.live.convert import VISITED, tensors_in
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Listener, Role

SENDS = {
    "torch.distributed.distributed_c10d": (
        "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single",
        "broadcast", "gather", "isend", "reduce", "reduce_scatter", "reduce_scatter_tensor",
        "all_gather_single", "reduce_scatter_single",
    ),
    "torch.distributed._functional_collectives": (
        "all_gather_single", "all_gather_tensor", "all_reduce", "all_to_all_single", "broadcast",
        "reduce_scatter_single", "reduce_scatter_tensor",
    ),
}  # fmt: skip
"""Modules, and their functions that send tensors to other ranks."""


class SentListener(Listener):
    """Counts the bytes of each call."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def returned(
        self, token: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """A tensor was sent. Of the tensors to send and those to receive, the smaller ones count.

        Only floats hold what a rank has learned: integers are predictions, states of random generators
        and pickled objects.
        """
        held = [tensors_in(each, VISITED) for each in (*args, *kwargs.values())]
        floats = ([each for each in them if each.is_floating_point()] for them in held if them)
        sizes = [sum(each.numel() * each.element_size() for each in them) for them in floats]
        self._job.state.optimizers.sent.add(min(sizes, default=0))


def install(job: FollowedJob) -> None:
    """Follow collectives and messages, if torch was built to have any and a rule asks for them."""
    optimizer = job.spec.entity("optimizer")
    read = () if optimizer is None else [field.name for field in optimizer.fields]
    if not dist.is_available() or "alone" not in read:
        return
    listener = SentListener(job)
    for module, names in SENDS.items():
        for name in names:
            job.functions.watch_path(Role("sent", listener, path=f"{module}.{name}"))

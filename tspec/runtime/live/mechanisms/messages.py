"""Follows point-to-point messages: whether the job sends any, and each message on its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from tspec.runtime.live.entities.messages import FEATURES, MessageSubjects
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Listener, Role

MODULE = "torch.distributed.distributed_c10d"
Keywords = Mapping[str, Any]


class _MessageListener(Listener):
    """Follows calls of one function. If `wanted` is false, messages are noticed and not read."""

    def __init__(self, job: FollowedJob, wanted: bool) -> None:
        self._job = job
        self._wanted = wanted

    @property
    def _messages(self) -> MessageSubjects:
        return self._job.state.messages

    def _row(self, tensor: torch.Tensor) -> Mapping[str, Any]:
        return self._job.features((tensor,), FEATURES)[0]


class SendListener(_MessageListener):
    """Follows `isend`, which `send` calls too."""

    def before(self, args: tuple[Any, ...], kwargs: Keywords) -> None:
        """Publish the features of a tensor before it is sent, so that the receiver knows them on arrival."""
        self._messages.seen = True
        tensor = args[0] if args else kwargs.get("tensor")
        peer = _peer(args, kwargs, "dst")
        if self._wanted and peer is not None and isinstance(tensor, torch.Tensor):
            self._messages.sending(self._job.rank, peer, _tag(args, kwargs), self._row(tensor))


class ReceiveListener(_MessageListener):
    """Follows `irecv`, which `recv` calls too."""

    def before(self, args: tuple[Any, ...], kwargs: Keywords) -> None:
        """The next step may open with the received tensor."""
        self._messages.seen = True
        if self._job.place.updated and not self._job.place.updating:
            self._job.waits()

    def returned(self, token: Any, args: tuple[Any, ...], kwargs: Keywords, result: Any) -> None:
        """The receive is issued."""
        self._messages.seen = True
        tensor = args[0] if args else kwargs.get("tensor")
        if not isinstance(tensor, torch.Tensor):
            return
        self._job.state.receive_buffers.receives(tensor)
        if self._wanted:
            peer = _peer(args, kwargs, "src")
            self._messages.receiving(peer, self._job.rank, _tag(args, kwargs), tensor, result)


class ReceiveReturnListener(_MessageListener):
    """Follows `recv`, which returns when the message has arrived."""

    def returned(self, token: Any, args: tuple[Any, ...], kwargs: Keywords, result: Any) -> None:
        """The message has arrived."""
        tensor = args[0] if args else kwargs.get("tensor")
        if isinstance(tensor, torch.Tensor):
            self._messages.arrived_in(tensor, self._row)


class WorkWaitListener(_MessageListener):
    """Follows `Work.wait`. After it, the message of a receive has arrived."""

    def returned(self, token: Any, args: tuple[Any, ...], kwargs: Keywords, result: Any) -> None:
        """Something has been waited for."""
        if args:
            self._messages.arrived(args[0], self._row)


def _peer(args: tuple[Any, ...], kwargs: Keywords, name: str) -> int | None:
    """The other end's rank in the world; None for a receive from anyone."""
    group = kwargs.get("group", args[2] if len(args) > 2 else None)
    within = kwargs.get(f"group_{name}", args[4] if len(args) > 4 else None)
    if within is not None:
        held = dist.group.WORLD if group is None else group
        return None if held is None else int(dist.get_global_rank(held, within))
    peer = kwargs.get(name, args[1] if len(args) > 1 else None)
    return None if peer is None else int(peer)


def _tag(args: tuple[Any, ...], kwargs: Keywords) -> int:
    return int(kwargs.get("tag", args[3] if len(args) > 3 else 0))


def install(job: FollowedJob) -> None:
    """Follow sends and receives, if torch was built with distributed support."""
    if not dist.is_available():
        return
    wanted = job.spec.entity("message") is not None
    followed: list[tuple[str, Callable[[FollowedJob, bool], _MessageListener]]] = [
        (f"{MODULE}.isend", SendListener),
        (f"{MODULE}.irecv", ReceiveListener),
    ]
    if wanted:
        followed.append((f"{MODULE}.recv", ReceiveReturnListener))
        followed.append(("torch._C._distributed_c10d.Work.wait", WorkWaitListener))
    for path, kind in followed:
        guard = job.state.messages.awaits if kind is WorkWaitListener else None
        key = f"message {path.rsplit('.', 1)[1]}"
        role = Role(key, kind(job, wanted), path=path, guard=guard)
        job.functions.watch_path(role)

"""Collectives that returned before their output was there: their calls end when the output is waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

import torch
import torch.distributed as dist

from tspec.runtime.edges import Missing, WatchedCall
from tspec.runtime.live.convert import tensors_in
from tspec.values import Datum

WAITED_WITHIN = 2
"""Steps: the output of a call is waited for before so many steps have opened after the call."""
FUNCTIONAL = "torch.distributed._functional_collectives."
"""The module of the collectives that return a tensor that waits by itself."""


def awaited(result: Any) -> Any:
    """The object to wait for before the output of a call may be read: a `Work`, or the tensor of a
    functional collective. None if the output is there.
    """
    if dist.is_available() and isinstance(result, dist.Work):
        return result
    return result.elem if _is_functional(result) and not result.completed else None


def is_collective(path: str) -> bool:
    """True if the path is that of a collective of torch."""
    return path.startswith("torch.distributed.")


def is_coalesced(path: str, group: Any) -> bool:
    """True if a collective of a group, None for the default one, was only recorded, to be issued at
    the end of its `_coalescing_manager`.
    """
    if not is_collective(path) or path.startswith(FUNCTIONAL) or not dist.is_available():
        return False
    open_groups = dist.distributed_c10d._world.pg_coalesce_state
    return bool(open_groups) and (group or dist.group.WORLD) in open_groups


def without_tensors(fields: Mapping[str, Any]) -> dict[str, Datum]:
    """The fields of a call whose tensors cannot be read, since it is unknown when its output was
    complete.
    """
    return {
        name: Missing.NOT_RECORDED if tensors_in(value) else value for name, value in fields.items()
    }


def _is_functional(result: Any) -> TypeGuard[Any]:
    return isinstance(result, torch.Tensor) and type(result).__name__ == "AsyncCollectiveTensor"


def _key(handle: Any) -> int:
    """A view of a functional collective's tensor stands for the whole: waiting for it is waiting for both."""
    if isinstance(handle, torch.Tensor):
        held = handle.elem if _is_functional(handle) else handle
        return int(held.untyped_storage()._cdata)
    return id(handle)


@dataclass(frozen=True, slots=True)
class _Output:
    """A tensor that receives a result: its memory, and its version when the collective was issued."""

    tensor: torch.Tensor
    version: int | None
    """None where the version counts unrelated writes: those to other views of its base, or by the
    backend to a coalesced buffer.
    """
    begin: int
    end: int

    @staticmethod
    def of(tensor: torch.Tensor, coalesced: bool) -> _Output:
        counts = not coalesced and not (tensor.is_inference() or tensor._is_view())
        return _Output(tensor, tensor._version if counts else None, *_extent(tensor))

    def was_written(self) -> bool:
        return self.version is not None and self.tensor._version != self.version


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The first byte of a tensor, and the first after it; nothing where there is no memory."""
    local = getattr(tensor, "_local_tensor", tensor)
    if not torch._C._has_storage(local) or not local.numel():
        return 0, 0
    last = sum((size - 1) * step for size, step in zip(local.shape, local.stride(), strict=True))
    begin = local.data_ptr()
    return begin, begin + (last + 1) * local.element_size()


@dataclass(slots=True, eq=False)
class PendingCall:
    """One call whose output is not there yet, and the function that reads its fields then."""

    call: WatchedCall
    handle: Any
    """What is waited for; None for a call that returned at the end of its manager."""
    fields: Callable[[], dict[str, Datum]]
    """The fields that need the result."""
    coalesced: bool = False
    """The call shares its work with other calls."""
    outputs: tuple[_Output, ...] = ()
    used: bool = False

    def expect_output(self) -> None:
        """The call has returned: every write to its output from now on is early.

        The tensor of a functional collective is left out, as it waits by itself when it is used.
        """
        if isinstance(self.handle, torch.Tensor):
            return
        found = tensors_in(list(self.fields().values()))
        self.outputs = tuple(
            _Output.of(each, self.coalesced) for each in found if each.layout == torch.strided
        )

    def read(self, extents: Sequence[tuple[int, int]]) -> None:
        """Something reads memory: the output may be in it."""
        self.used |= any(
            begin < each.end and each.begin < end for each in self.outputs for begin, end in extents
        )


class PendingCalls:
    """The pending calls of the latest steps. Their handles are held, so that no later object gets
    the id of one.
    """

    def __init__(self) -> None:
        self._by_handle: dict[int, list[PendingCall]] = {}
        self._blocks: list[list[tuple[WatchedCall, Callable[[Any], dict[str, Any]]]]] = []
        """For each `_coalescing_manager` that is open, the innermost last: its collectives, which are
        not issued yet, and how their fields are read from their result.
        """

    def __bool__(self) -> bool:
        return bool(self._by_handle)

    def __iter__(self) -> Iterator[PendingCall]:
        return iter([each for calls in self._by_handle.values() for each in calls])

    def add(self, pending: PendingCall) -> None:
        """A call returned before its output was there."""
        self._by_handle.setdefault(_key(pending.handle), []).append(pending)
        pending.expect_output()

    @property
    def coalesces(self) -> bool:
        """A `_coalescing_manager` is open."""
        return bool(self._blocks)

    def block_opens(self) -> None:
        """A `_coalescing_manager` opens."""
        self._blocks.append([])

    def postpone(self, call: WatchedCall, fields: Callable[[Any], dict[str, Datum]]) -> None:
        """A collective was noted within `_coalescing_manager`, which issues it at its end."""
        self._blocks[-1].append((call, fields))

    def issued(self, work: Any) -> None:
        """The collectives of the innermost manager were issued with one work. Without a work, the
        time at which the output is there is unknown.
        """
        noted, self._blocks[-1] = self._blocks[-1], []
        handle = object() if work is None else work
        for call, fields in noted:
            self.add(PendingCall(call, handle, partial(fields, work), coalesced=True))

    def block_closes(self) -> Sequence[PendingCall]:
        """The innermost manager closed: its calls that returned then, as no work was issued for them."""
        return [
            PendingCall(call, None, partial(fields, None), coalesced=True)
            for call, fields in self._blocks.pop()
        ]

    def overdue(self, step: int) -> Sequence[PendingCall]:
        """The calls whose output is not waited for any more when a step opens."""
        return [each for each in self if each.call.context.step <= step - WAITED_WITHIN]

    def of(self, handle: Any) -> Sequence[PendingCall]:
        """The calls that end when this is waited for."""
        return self._by_handle.get(_key(handle), ()) if self._by_handle else ()

    def used_early(self, result: Any) -> bool:
        """True if the output of the call with this result was used before it was waited for."""
        return any(
            each.used or any(map(_Output.was_written, each.outputs)) for each in self.of(result)
        )

    def read(self, tensors: Iterable[torch.Tensor]) -> None:
        """A model or an optimizer is about to read tensors."""
        extents = [_extent(tensor) for tensor in tensors]
        for each in self:
            each.read(extents)

    def remove(self, pending: PendingCall) -> None:
        """The call has ended."""
        if pending.handle is None:
            return
        left = [each for each in self.of(pending.handle) if each is not pending]
        self._by_handle[_key(pending.handle)] = left
        if not left:
            del self._by_handle[_key(pending.handle)]

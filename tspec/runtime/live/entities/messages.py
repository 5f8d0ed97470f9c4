"""Messages: the n-th tensor that one rank sent another, as this rank received it.

The sender publishes the features of the tensor through the job's store, beside the message. It
publishes no tensors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from tspec.runtime.edges import Missing
from tspec.runtime.live.entities.kind import ABSENT, NOT_RECORDED
from tspec.values import Datum

FEATURES = (
    "digest", "norm", "finite", "zeros", "sum", "mean", "min", "max",
    "shape", "dtype", "device", "numel", "requires_grad",
)  # fmt: skip
"""Features of a message, read where it is sent, where it arrives, and where a layer reads it."""


class TensorSnapshot:
    """Features of a tensor as they were at some instant: a handle that needs no tensor."""

    __slots__ = ("features",)

    def __init__(self, features: Mapping[str, Datum]) -> None:
        self.features = features

    def row(self, names: tuple[str, ...]) -> dict[str, Datum]:
        """The features of these names; a feature that was not taken is not recorded."""
        return {name: self.features.get(name, NOT_RECORDED) for name in names}


@dataclass(slots=True, eq=False)
class ReceivedMessage:
    """One message on the rank that receives it."""

    name: str
    source: int
    target: int
    key: str
    """The key under which the sender publishes its features; empty if that cannot be known."""
    buffer: torch.Tensor | None
    work: Any
    place: tuple[int, tuple[int, ...]]
    """The address of the receive buffer, and its shape."""
    sent: Datum = None
    received: Datum = ABSENT
    read: Datum = ABSENT
    used: bool = False
    born: int = -1


@dataclass(slots=True)
class _MessageCounts:
    sent: dict[tuple[int, int], int] = field(default_factory=dict)
    received: dict[tuple[int, int], int] = field(default_factory=dict)


class MessageSubjects:
    """Kind `message`: `message.1.0.4` is the fourth from rank 1 to rank 0."""

    def __init__(self) -> None:
        self.seen = False
        """Some rank uses point-to-point communication."""
        self.anyone = False
        """Something was received from anyone: from then on it is not known which message is which."""
        self.waiting: list[ReceivedMessage] = []
        """Messages received, or to be received, that training has not used yet."""
        self._now: dict[str, ReceivedMessage] = {}
        self._before: dict[str, ReceivedMessage] = {}
        self._counts = _MessageCounts()

    # what happens

    def sending(self, source: int, target: int, tag: int, row: Mapping[str, Datum]) -> None:
        """Publish the features of a message that is about to be sent."""
        pair = (target, tag)
        number = self._counts.sent[pair] = self._counts.sent.get(pair, 0) + 1
        _put(_key(source, target, tag, number), row)

    def receiving(
        self, source: int | None, target: int, tag: int, buffer: torch.Tensor, work: Any
    ) -> None:
        """A receive was issued."""
        if source is None:
            self.anyone = True
        known = -1 if source is None else source
        pair = (known, tag)
        number = self._counts.received[pair] = self._counts.received.get(pair, 0) + 1
        name = f"message.{known}.{target}.{number}" + (f".{tag}" if tag else "")
        key = "" if self.anyone else _key(known, target, tag, number)
        self.waiting.append(ReceivedMessage(name, known, target, key, buffer, work, _place(buffer)))

    def awaits(self, work: Any) -> bool:
        """True if this work is that of an open receive."""
        return any(each.work is work for each in (*self.waiting, *self._now.values()))

    def arrived(self, work: Any, read: Callable[[torch.Tensor], Mapping[str, Datum]]) -> None:
        """A receive has been waited for: read the message from its buffer."""
        for message in (*self.waiting, *self._now.values()):
            if message.work is work and message.received is ABSENT and message.buffer is not None:
                message.received = TensorSnapshot(read(message.buffer))
                self._learn(message)

    def arrived_in(
        self, buffer: torch.Tensor, read: Callable[[torch.Tensor], Mapping[str, Datum]]
    ) -> None:
        """A receive into a buffer has returned."""
        for message in reversed(self.waiting):
            if message.buffer is buffer:
                self.arrived(message.work, read)
                return

    def taken_up(self, seq: int) -> None:
        """Training continues with the received tensors: from here on the messages are subjects."""
        for message in self.waiting:
            message.born = seq
            self._now[message.name] = message
            self._learn(message)
        self.waiting.clear()

    def reading(
        self, tensor: torch.Tensor, read: Callable[[torch.Tensor], Mapping[str, Datum]]
    ) -> None:
        """A layer is about to read a tensor, which may be a received one."""
        self.using(tensor)
        place = _place(tensor)
        for message in self._now.values():
            if message.read is ABSENT and message.buffer is not None:
                same = message.buffer is tensor or message.place == place
                if same:
                    message.read = TensorSnapshot(read(tensor))

    def using(self, tensor: torch.Tensor) -> None:
        """Training computes with a tensor: the last message that came into its memory is used."""
        place = _place(tensor)
        for message in reversed(self._now.values()):
            if message.buffer is tensor or message.place == place:
                message.used = True
                return

    def step_opens(self) -> None:
        """Keep the messages of the step that ends for the check at its end, and drop those before
        it.
        """
        for message in self._before.values():
            message.buffer = message.work = None
        self._before, self._now = self._now, {}

    def _learn(self, message: ReceivedMessage) -> None:
        """Take the features that the sender has published, if they are there by now."""
        if message.sent is None and message.key:
            row = _get(message.key)
            message.sent = None if row is None else TensorSnapshot(row)

    # the kind

    def things(self) -> Mapping[str, ReceivedMessage]:
        return self._now if not self._before else {**self._before, **self._now}

    def born(self) -> dict[str, int]:
        """The sequence number at which each message became a subject, by name."""
        return {name: message.born for name, message in self.things().items()}

    def name_of(self, thing: Any) -> str | None:
        return None

    def field(self, name: str, subject: str, thing: ReceivedMessage) -> Datum:
        if name == "sent":
            self._learn(thing)
            return NOT_RECORDED if thing.sent is None else thing.sent
        if name == "received":
            return thing.received
        if name == "read":
            return thing.read
        if name == "used":
            return thing.used
        if name == "buffer":
            return ABSENT if thing.buffer is None else thing.buffer
        if name == "source":
            return thing.source if thing.source >= 0 else NOT_RECORDED
        return thing.target if name == "target" else ABSENT


def _place(tensor: torch.Tensor) -> tuple[int, tuple[int, ...]]:
    try:
        return tensor.data_ptr(), tuple(tensor.shape)
    except RuntimeError:  # fake and other tensors without memory
        return id(tensor), tuple(tensor.shape)


def _key(source: int, target: int, tag: int, number: int) -> str:
    return f"tspec/message/{source}/{target}/{tag}/{number}"


def _put(key: str, row: Mapping[str, Datum]) -> None:
    from torch.distributed.distributed_c10d import _get_default_store

    plain = {name: value for name, value in row.items() if not isinstance(value, Missing)}
    _get_default_store().set(key, json.dumps(plain))


def _get(key: str) -> Mapping[str, Any] | None:
    """The features published under a key; None if there are none yet. Reading removes them."""
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import _get_default_store

    if not dist.is_initialized():
        return None
    store = _get_default_store()
    if not store.check([key]):
        return None
    found: dict[str, Any] = json.loads(store.get(key))
    store.delete_key(key)
    return {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()}

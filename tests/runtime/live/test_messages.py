"""What becomes of a message: told by its sender, received, read by a layer, and gone after the step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist

from tspec.runtime.edges import Missing
from tspec.runtime.live.entities.messages import FEATURES, MessageSubjects, TensorSnapshot
from tspec.runtime.live.features import features


@pytest.fixture(autouse=True)
def store() -> Iterator[None]:
    """A job of one rank, which may send to itself."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def read(tensor: torch.Tensor) -> dict[str, Any]:
    return features((tensor,), FEATURES)[0]


def digest(value: Any) -> Any:
    return value.row(("digest",))["digest"] if isinstance(value, TensorSnapshot) else value


def fields(messages: MessageSubjects, name: str) -> list[Any]:
    return [digest(messages.field(name, each, it)) for each, it in messages.things().items()]


def test_the_nth_that_was_sent_meets_the_nth_that_arrives() -> None:
    messages, work = MessageSubjects(), object()
    for value in (1.0, 2.0):
        messages.sending(0, 0, 0, read(torch.full((3,), value)))
    first, second = torch.full((3,), 1.0), torch.full((3,), 7.0)
    messages.receiving(0, 0, 0, first, work)
    messages.receiving(0, 0, 0, second, None)
    messages.arrived(work, read)
    assert list(messages.things()) == []
    messages.taken_up(5)
    assert messages.born() == {"message.0.0.1": 5, "message.0.0.2": 5}
    ones, twos = (
        digest(TensorSnapshot(read(torch.ones(3)))),
        digest(TensorSnapshot(read(torch.full((3,), 2.0)))),
    )
    assert fields(messages, "sent") == [ones, twos]
    assert fields(messages, "received") == [ones, Missing.ABSENT]


def test_a_layer_reads_the_buffer_or_another_view_of_it() -> None:
    messages = MessageSubjects()
    buffer = torch.zeros(2, 2)
    messages.receiving(0, 0, 0, buffer, None)
    messages.taken_up(1)
    messages.reading(torch.zeros(2, 2), read)
    assert fields(messages, "read") == [Missing.ABSENT]
    messages.reading(buffer.detach().requires_grad_(), read)
    assert fields(messages, "read") == [digest(TensorSnapshot(read(buffer)))]


def test_the_last_message_in_a_buffer_is_used() -> None:
    messages = MessageSubjects()
    buffer, gradient = torch.zeros(2, 2), torch.zeros(2, 2)
    for received in (buffer, gradient, buffer):
        messages.receiving(0, 0, 0, received, None)
    messages.taken_up(1)
    messages.reading(buffer, read)
    assert fields(messages, "used") == [False, False, True]
    messages.using(gradient.view(2, 2))
    assert fields(messages, "used") == [False, True, True]


def test_messages_last_for_a_look_at_the_end_of_their_step() -> None:
    messages = MessageSubjects()
    messages.receiving(0, 0, 0, torch.zeros(1), None)
    messages.taken_up(1)
    messages.step_opens()
    assert list(messages.things()) == ["message.0.0.1"]
    messages.step_opens()
    assert list(messages.things()) == []


def test_after_a_receive_from_anyone_it_is_not_known_what_was_sent() -> None:
    messages = MessageSubjects()
    messages.sending(0, 0, 0, read(torch.ones(1)))
    messages.receiving(None, 0, 0, torch.ones(1), None)
    messages.receiving(0, 0, 0, torch.ones(1), None)
    messages.taken_up(1)
    assert fields(messages, "sent") == [Missing.NOT_RECORDED, Missing.NOT_RECORDED]
    assert fields(messages, "source") == [Missing.NOT_RECORDED, 0]

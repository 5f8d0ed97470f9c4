"""Parameters that a loss is computed with, and that nobody holds."""

from collections.abc import Sequence

import torch
from torch import nn

from tspec.runtime.live.losses.loose import LooseParameters


def beside(*held: torch.Tensor) -> LooseParameters:
    return attributes_of(held=held)


def attributes_of(*tensors: torch.Tensor, held: Sequence[torch.Tensor] = ()) -> LooseParameters:
    """Of modules that have these tensors as attributes."""
    return LooseParameters(
        lambda tensor: any(each is tensor for each in held),
        lambda tensor: any(each is tensor for each in tensors),
    )


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, requires_grad=True)


def test_some_later_passes_are_looked_at() -> None:
    seen, loss = beside(), drawn(2).sum()
    looked = [seen.loose_parameters(loss) is not None for _ in range(60)]
    assert [number for number, each in enumerate(looked, 1) if each] == [*range(1, 17), 50, 51, 52]


def test_parameters_of_a_second_phase() -> None:
    loose, first = nn.Parameter(torch.ones(3)), drawn(2).sum()
    seen = beside()
    found = [seen.loose_parameters(loose.sum() if each >= 40 else first) for each in range(1, 53)]
    assert found[-3:] == [[], [loose.shape], [loose.shape]]


def test_parameters_that_nobody_holds() -> None:
    held, loose, plain = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3)), drawn(4)
    seen = beside(held)
    found = []
    for step in range(4):
        loss = held.sum() * loose.sum() * plain.sum()
        found.append(seen.loose_parameters(loss))
        if step == 1:
            loose.data += 1
    assert found == [[], [(3,)], [], [(3,)]]


def test_numbers_with_a_gradient_that_nobody_holds() -> None:
    temperature, places = drawn(1), drawn(4)
    loss = (temperature * places).sum()
    seen = beside()
    assert [seen.loose_parameters(loss) for _ in range(2)] == [[], [(1,)]]
    held = beside(temperature)
    assert [held.loose_parameters(loss) for _ in range(2)] == [[], []]


def test_attributes_of_modules_with_a_gradient() -> None:
    places, inputs = drawn(4), drawn(4)
    loss = (places * inputs).sum()
    seen = attributes_of(places)
    assert [seen.loose_parameters(loss) for _ in range(2)] == [[], [(4,)]]


def test_parameters_that_are_made_anew() -> None:
    seen = beside()
    found = [seen.loose_parameters(nn.Parameter(torch.ones(2)).sum()) for _ in range(3)]
    assert found == [[], [], []]


def test_parameters_whose_memory_was_given_back() -> None:
    loose = nn.Parameter(torch.ones(2))
    loss = (drawn(2) * loose).sum()
    seen = beside()
    assert seen.loose_parameters(loss) == []
    loose.untyped_storage().resize_(0)
    assert seen.loose_parameters(loss) == []

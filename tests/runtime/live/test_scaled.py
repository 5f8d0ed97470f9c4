"""The factor by which a script scales gradients before an update is told from what changes them otherwise."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tspec.runtime.live.updates.scaled import GradientFactors

Parameters = list[nn.Parameter]


def clip(parameters: Parameters) -> None:
    nn.utils.clip_grad_norm_(parameters, 1.0)


def unscale_and_clip(parameters: Parameters) -> None:
    for each in parameters:
        assert each.grad is not None
        each.grad.mul_(1 / 1024)
    nn.utils.clip_grad_norm_(parameters, 1e-3)


def assign_anew(parameters: Parameters) -> None:
    for each in parameters:
        assert each.grad is not None
        each.grad = each.grad * 0.25


def leave(parameters: Parameters) -> None:
    pass


def by_layer(parameters: Parameters) -> None:
    for number, each in enumerate(parameters):
        assert each.grad is not None
        each.grad.mul_(0.9**number)


def to_norms_of_their_own(parameters: Parameters) -> None:
    for each in parameters:
        assert each.grad is not None
        each.grad.div_(each.grad.norm())


def clip_groups(parameters: Parameters) -> None:
    nn.utils.clip_grad_norm_(parameters[:1], 1.0)
    nn.utils.clip_grad_norm_(parameters[1:], 1.0)


def clamp(parameters: Parameters) -> None:
    nn.utils.clip_grad_value_(parameters, 0.1)


def reduce(parameters: Parameters) -> None:
    for each in parameters:
        assert each.grad is not None
        each.grad.add_(torch.randn_like(each)).div_(2)


def overflow(parameters: Parameters) -> None:
    assert parameters[0].grad is not None
    for each in parameters:
        assert each.grad is not None
        each.grad.mul_(float("inf"))


def clear(parameters: Parameters) -> None:
    for each in parameters:
        each.grad = None


def factors(
    change: Callable[[Parameters], None],
    count: int = 1,
    dtype: torch.dtype = torch.float32,
    shapes: tuple[tuple[int, ...], ...] = ((64, 33), (33,), (3,)),
) -> tuple[list[float], list[float]]:
    """Of each update: the factor that is told, and what became of the norm of all gradients."""
    torch.manual_seed(0)
    parameters = [nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in shapes]
    known, told, true = GradientFactors(first=lambda: True), [], []
    for _ in range(count):
        for each in parameters:
            each.grad = torch.randn(each.shape).to(dtype)
        before = nn.utils.get_total_norm([each.grad.double() for each in parameters])
        if known.is_due(0):
            known.after_backward(0, parameters)
        change(parameters)
        known.before_update(0)
        told.append(known.of(0))
        after = [each.grad.double() for each in parameters if each.grad is not None]
        true.append(float(nn.utils.get_total_norm(after) / before))
    return told, true


@pytest.mark.parametrize("change", [clip, unscale_and_clip, assign_anew])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_factor_of_all(change: Callable[[Parameters], None], dtype: torch.dtype) -> None:
    told, true = factors(change, dtype=dtype)
    assert told == pytest.approx(true, rel=0.01)
    assert told[0] < 0.5


@pytest.mark.parametrize(
    "change",
    [leave, by_layer, to_norms_of_their_own, clip_groups, clamp, reduce, overflow, clear],
)
def test_what_is_no_factor_of_all(change: Callable[[Parameters], None]) -> None:
    assert factors(change)[0] == [1.0]


@pytest.mark.parametrize("shapes", [((64, 33),), ((64, 33), (3,))])
def test_one_parameter_may_have_a_factor_of_its_own(shapes: tuple[tuple[int, ...], ...]) -> None:
    assert factors(clip, shapes=shapes)[0] == [1.0]


def test_updates_that_are_looked_at_come_in_pairs() -> None:
    told, _ = factors(clip, 42)
    seen = [number for number, factor in enumerate(told, 1) if factor != 1.0]
    assert seen == [*range(1, 23), 31, 32, 41, 42]


def test_gradients_of_zeros_and_sparse_ones_say_nothing() -> None:
    zero, table = nn.Parameter(torch.zeros(64)), nn.Embedding(64, 4, sparse=True)
    known = GradientFactors(first=lambda: True)
    zero.grad = torch.zeros(64)
    table(torch.tensor([3, 5])).sum().backward()
    known.after_backward(0, [zero, table.weight])
    zero.grad.mul_(0.5)
    known.before_update(0)
    assert known.of(0) == 1.0


def test_an_optimizer_that_is_gone_is_forgotten() -> None:
    parameters = [nn.Parameter(torch.zeros(64)) for _ in range(2)]
    known = GradientFactors(first=lambda: True)
    for each in parameters:
        each.grad = torch.randn(64)
    known.after_backward(0, parameters)
    clip(parameters)
    known.before_update(0)
    assert known.of(0) < 1
    known.forget([0])
    assert known.of(0) == 1.0

"""By which operations a loss was computed: the same for deeper and wider models, another for another computation."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tspec.runtime.live.losses.operations import MOST, PASSES, LossOperations


def operations(loss: torch.Tensor) -> set[str]:
    return LossOperations().operations(loss)


def attention(x: torch.Tensor, project: nn.Module, change: str = "") -> torch.Tensor:
    """One head of causal self-attention with a change."""
    q, k, v = project(x).chunk(3, -1)
    scores = q @ k.transpose(-2, -1)
    if change != "unscaled":
        scores = scores / math.sqrt(q.shape[-1])
    if change != "unmasked":
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -math.inf)
    if change == "detached":
        v = v.detach()
    return scores.softmax(-2 if change == "queries" else -1) @ v


def model_loss(
    layers: int = 2, width: int = 8, length: int = 5, samples: int = 3, change: str = ""
) -> torch.Tensor:
    """The mean loss of a stack of attention layers."""
    x = torch.randn(samples, length, width)
    if change != "no positions":
        x = x + nn.Parameter(torch.randn(length, width))
    for _ in range(layers):
        y = attention(x, nn.Linear(width, 3 * width), change)
        x = y if change == "no skip" else x + y
    error = F.mse_loss(x, torch.zeros_like(x), reduction="sum" if change == "sum" else "mean")
    return -error if change == "negated" else error


def test_pairs_of_an_operation_and_what_it_was_given() -> None:
    x = torch.randn(4, 6)
    loss = F.cross_entropy(
        F.relu(nn.Linear(6, 3)(x)).detach() + nn.Linear(6, 3)(x), torch.arange(4) % 3
    )
    assert operations(loss) == {
        "loss <- nll_loss(mean)",
        "nll_loss(mean) <- log_softmax(1)",
        "log_softmax(1) <- add",
        "add <- constant",
        "add <- addmm",
        "addmm <- parameter",
        "addmm <- constant",
        "addmm <- t",
        "t <- parameter",
    }  # fmt: skip


def test_sizes_do_not_matter() -> None:
    one = operations(model_loss())
    assert operations(model_loss(layers=4, width=16, length=9, samples=1)) == one
    assert operations(torch.compile(model_loss, backend="eager")()) == one


@pytest.mark.parametrize(
    ("change", "new"),
    [
        ("unscaled", "masked_fill <- bmm"),
        ("unmasked", "softmax(-1) <- div"),
        ("queries", "softmax(-2) <- masked_fill"),
        ("detached", "bmm <- constant"),
        ("no skip", "mse_loss(mean) <- bmm"),
        ("sum", "mse_loss(sum) <- add"),
        ("negated", "loss <- neg"),
    ],
)
def test_another_computation_has_operations_of_its_own(change: str, new: str) -> None:
    assert new in operations(model_loss(change=change)) - operations(model_loss())


def test_what_is_left_out_is_missing() -> None:
    assert operations(model_loss()) - operations(model_loss(change="no positions")) == {
        "add <- parameter"
    }


def test_a_batch_norm_says_in_which_mode_it_was() -> None:
    norm = nn.BatchNorm1d(3)
    x = torch.randn(4, 3)
    assert "sum <- native_batch_norm(training)" in operations(norm(x).sum())
    assert "sum <- native_batch_norm(not training)" in operations(norm.eval()(x).sum())


def test_operations_are_named_as_torch_names_its_functions() -> None:
    pictures = torch.randn(2, 1, 4, 4, requires_grad=True)
    pairs = operations(F.avg_pool2d(F.max_pool2d(pictures, 2), 2).sum())
    assert {"avg_pool2d <- max_pool2d_with_indices", "sum <- avg_pool2d"} <= pairs


def test_distances_of_many_rows_are_those_of_few() -> None:
    def distances(rows: int) -> set[str]:
        points = torch.randn(rows, 3, requires_grad=True)
        return operations(torch.cdist(points * 2, points).sum())

    assert distances(40) == distances(8)


def test_hooks_of_modules_are_not_seen() -> None:
    layer = nn.Linear(3, 2)
    x = torch.randn(4, 3, requires_grad=True)
    plain = operations(layer(x).sum())
    layer.register_full_backward_hook(lambda *_: None)
    assert operations(layer(x).sum()) == plain


def test_the_first_passes_are_read_and_then_some() -> None:
    seen = LossOperations()
    loss = nn.Linear(2, 1)(torch.ones(1, 2)).sum()
    read = [bool(seen.operations(loss)) for _ in range(PASSES.first + 2 * PASSES.every)]
    assert read[: PASSES.first] == [True] * PASSES.first
    assert sum(read[PASSES.first :]) == 2


def test_an_unrolled_optimisation_is_left_out() -> None:
    value = torch.ones((), requires_grad=True)
    for _ in range(MOST):
        value = value * 2
    assert operations(value) == set()
    assert operations(torch.ones(())) == set()

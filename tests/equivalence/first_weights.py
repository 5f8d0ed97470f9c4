"""A model under tensor parallelism by hand that draws its own first weights: each rank draws all, and keeps its shard.

`--fault piece` keeps the shard of another rank of one matrix, `spread` draws with the deviation of the shard's own width,
`own_bias` lets each rank draw a bias that all have.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
FAULT = sys.argv[-1] if RANKS > 1 else ""
INPUTS, HIDDEN, CLASSES = 8, 32, 4


class Sum(torch.autograd.Function):
    """The sum over the ranks; its gradient passes as it is."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        if RANKS > 1:
            dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class Model(nn.Module):
    """Two layers, cut by columns and by rows."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(INPUTS, HIDDEN // RANKS)
        self.fc2 = nn.Linear(HIDDEN // RANKS, CLASSES, bias=False)
        self.bias = nn.Parameter(torch.zeros(CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        return Sum.apply(self.fc2(torch.relu(self.fc1(x)))) + self.bias


def first_weights() -> dict[str, Tensor]:
    """This rank's shards of the weights that all ranks draw."""
    drawn = torch.Generator().manual_seed(5)
    width = HIDDEN // RANKS if FAULT == "spread" else HIDDEN
    full = {
        "fc1.weight": torch.randn(HIDDEN, INPUTS, generator=drawn) / INPUTS**0.5,
        "fc1.bias": 0.1 * torch.randn(HIDDEN, generator=drawn),
        "fc2.weight": torch.randn(CLASSES, HIDDEN, generator=drawn) / width**0.5,
    }
    pieces = {
        name: each.chunk(RANKS, -1 if name == "fc2.weight" else 0)[RANK]
        for name, each in full.items()
    }
    if FAULT == "piece":
        pieces["fc1.weight"] = full["fc1.weight"].chunk(RANKS)[RANKS - 1 - RANK]
    if FAULT == "own_bias":
        drawn.manual_seed(RANK)
    return {**pieces, "bias": 0.1 * torch.randn(CLASSES, generator=drawn)}


if RANKS > 1:
    dist.init_process_group("gloo")
model = Model()
model.load_state_dict(first_weights())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
batches = torch.Generator().manual_seed(0)
for _ in range(2):
    x = torch.randn(16, INPUTS, generator=batches)
    y = torch.randint(CLASSES, (16,), generator=batches)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
if RANKS > 1:
    dist.destroy_process_group()

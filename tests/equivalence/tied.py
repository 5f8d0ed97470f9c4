"""Two stages by hand, whose last one predicts tokens with the table that embeds them on the first.

On one rank it is the reference. With `--fault unsummed` each stage updates the table by its own gradient.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn

TOKENS, HIDDEN, BATCH = 12, 8, 16
RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
FIRST, LAST = RANK == 0, RANK == RANKS - 1
FAULTS = ("unsummed",)


class Stage(nn.Module):
    """The layers of a rank."""

    def __init__(self) -> None:
        super().__init__()
        if FIRST:
            self.embed = nn.Embedding(TOKENS, HIDDEN)
        if LAST:
            self.mix, self.head = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, TOKENS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if FIRST:
            x = self.embed(x)
        return self.head(torch.tanh(self.mix(x))) if LAST else x


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=FAULTS, default="")
    fault = parser.parse_args().fault
    model = Stage()
    table = (model.embed if FIRST else model.head).weight
    if RANKS == 1:
        model.head.weight = table
    else:
        dist.init_process_group("gloo")
        dist.broadcast(table.data, src=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)
    for _ in range(3):
        x, y = (torch.randint(TOKENS, (BATCH,), generator=batches) for _ in range(2))
        optimizer.zero_grad()
        if not FIRST:
            x = torch.empty(BATCH, HIDDEN)
            dist.recv(x, src=RANK - 1)
            x.requires_grad_()
        made = model(x)
        if LAST:
            nn.functional.cross_entropy(made, y).backward()
        else:
            dist.send(made.detach(), dst=RANK + 1)
            gradient = torch.empty_like(made)
            dist.recv(gradient, src=RANK + 1)
            made.backward(gradient)
        if not FIRST:
            dist.send(x.grad, dst=RANK - 1)
        if RANKS > 1 and fault != "unsummed":
            dist.all_reduce(table.grad)
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

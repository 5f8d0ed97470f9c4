"""A model with dropout of each kind that torch has, under DistributedDataParallel on several ranks; `--fault` scales an output there."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
INPUTS, HIDDEN, CLASSES, BATCH, RATE = 6, 16, 4, 8, 0.3


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(INPUTS, HIDDEN)
        self.attention = nn.TransformerEncoderLayer(
            HIDDEN, 2, 2 * HIDDEN, dropout=RATE, batch_first=True
        )
        self.recurrent = nn.LSTM(HIDDEN, HIDDEN, 2, dropout=RATE, batch_first=True)
        self.drop = nn.Dropout(RATE)
        self.head = nn.Linear(HIDDEN, CLASSES)
        self.scale = 1.01 if "--fault" in sys.argv and RANKS > 1 else 1.0

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention(functional.dropout(self.embed(x), RATE, self.training))
        x, _ = self.recurrent(x)
        return self.head(self.drop(x[:, -1]) * self.scale)


def main() -> None:
    if RANKS > 1:
        dist.init_process_group("gloo")
    inner = Model()
    model = nn.parallel.DistributedDataParallel(inner) if RANKS > 1 else inner
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = torch.Generator().manual_seed(0)
    for _ in range(2):
        x = torch.randn(BATCH, 5, INPUTS, generator=batches).chunk(RANKS)[RANK]
        y = torch.randint(CLASSES, (BATCH,), generator=batches).chunk(RANKS)[RANK]
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

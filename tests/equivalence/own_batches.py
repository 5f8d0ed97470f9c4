"""A small language model under DistributedDataParallel whose ranks draw their batches by themselves.

Tokens and labels are views of one tensor. `--fault` leaves out the reduction of gradients, `--uncut` gives each rank
batches of the size that one rank has.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
VOCABULARY, WIDTH, BATCH, LENGTH = 16, 8, 8, 5


class Model(nn.Module):
    """Predicts the next token from the last one and from noise."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor, noise: Tensor) -> Tensor:
        return self.head(torch.tanh(self.embed(tokens) + noise))


def _unreduced(_, bucket):
    """The gradients of this rank alone."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


if RANKS > 1:
    dist.init_process_group("gloo")
inner = Model()
model = nn.parallel.DistributedDataParallel(inner) if RANKS > 1 else inner
if RANKS > 1 and "--fault" in sys.argv:
    model.register_comm_hook(None, _unreduced)
optimizer = torch.optim.AdamW(inner.parameters(), lr=0.01)
own = torch.Generator().manual_seed(1000 * RANKS + RANK)
rows = BATCH if "--uncut" in sys.argv else BATCH // RANKS
for _ in range(3):
    optimizer.zero_grad()
    for _ in range(2):
        text = torch.randint(VOCABULARY, (rows, LENGTH + 1), generator=own)
        noise = torch.randn(rows, 1, WIDTH, generator=own)
        logits = model(text[:, :-1], noise)
        nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).backward()
    optimizer.step()
if RANKS > 1:
    dist.destroy_process_group()

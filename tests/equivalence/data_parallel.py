"""A small model under DistributedDataParallel with gradient accumulation; `--fault` leaves out what joins the ranks.

With `--zero` each rank keeps the optimizer's state of some parameters; `--beta2` is another one on the last rank.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))

if RANKS > 1:
    dist.init_process_group("gloo")
inner = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
model = nn.parallel.DistributedDataParallel(inner) if RANKS > 1 else inner
beta2 = 0.99 if "--beta2" in sys.argv and 1 < RANKS == RANK + 1 else 0.999
options = {"lr": 0.01, "betas": (0.9, beta2)}
if "--zero" in sys.argv and RANKS > 1:
    from torch.distributed.optim import ZeroRedundancyOptimizer  # it takes a second

    optimizer = ZeroRedundancyOptimizer(inner.parameters(), torch.optim.Adam, **options)
else:
    optimizer = torch.optim.Adam(inner.parameters(), **options)
batches = torch.Generator().manual_seed(0)
for _ in range(4):
    optimizer.zero_grad()
    for last in (False, True):
        x, y = torch.randn(8, 6, generator=batches), torch.randn(8, 4, generator=batches)
        x, y = x.chunk(RANKS)[RANK], y.chunk(RANKS)[RANK]
        if RANKS > 1 and (not last or "--fault" in sys.argv):
            with model.no_sync():
                nn.functional.mse_loss(model(x), y).backward()
        else:
            nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
if RANKS > 1:
    dist.destroy_process_group()

"""In the second step the last rank is killed, and the others wait for it where nothing tells them: in a store."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))


def wait(store: dist.Store) -> None:
    store.wait(["gradients of the last rank"], timedelta(hours=1))


dist.init_process_group("gloo")
model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(4, 6)).square().mean().backward()
    if step == 1 and RANKS > 1:
        if RANKS == RANK + 1:
            os.kill(os.getpid(), signal.SIGKILL)
        wait(dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False))
    optimizer.step()

"""A bfloat16 model whose parameters are copies of float32 main parameters; `--fault` puts a bug into the copying.

Ranks have parts of the batch, and add up gradients in float32. Faults: the last parameter is not copied in the second step
(`stale`), and a copy is cut off instead of rounded (`truncated`), which is off by less than bfloat16's round-off.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))


def copied(main: Tensor, truncated: bool) -> Tensor:
    """A main parameter in bfloat16: rounded, or without its lower 16 bits."""
    if truncated:
        main = (main.view(torch.int32) & -65536).view(torch.float32)
    return main.to(torch.bfloat16)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=["stale", "truncated"])
    fault = parser.parse_args().fault if RANKS > 1 else None
    if RANKS > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).bfloat16()
    parameters = list(model.parameters())
    mains = [nn.Parameter(each.detach().float()) for each in parameters]
    for each, kept in zip(parameters, mains, strict=True):
        each.main_param = kept
    optimizer = torch.optim.SGD(mains, lr=0.1)
    batches = torch.Generator().manual_seed(0)
    for step in range(1, 4):
        x, y = torch.randn(8, 6, generator=batches), torch.randn(8, 4, generator=batches)
        x, y = x.chunk(RANKS)[RANK].bfloat16(), y.chunk(RANKS)[RANK].bfloat16()
        nn.functional.mse_loss(model(x), y).backward()
        for each, kept in zip(parameters, mains, strict=True):
            kept.grad = each.grad.float()
            each.grad = None
            if RANKS > 1:
                dist.all_reduce(kept.grad)
                kept.grad /= RANKS
        optimizer.step()
        for number, (each, kept) in enumerate(zip(parameters, mains, strict=True), 1):
            if not (fault == "stale" and step == 2 and number == len(parameters)):
                each.data.copy_(copied(kept.detach(), fault == "truncated"))
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""TrainCheck's new DS-6089: each rank works out the capacity of an expert for itself.

The real job waits for ever, as the sizes of its all-to-all differ. Here only what is over the
capacity is dropped, so the ranks drop different shares of their tokens. Stand-in: two gloo ranks,
replicated experts.
"""

import argparse
import math
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def expert_capacity(tokens: int, busiest: int, factor: float, bug: str | None) -> int:
    """Rows that each expert takes at most."""
    least = torch.tensor(max(math.ceil(factor * busiest), tokens // 4))
    if not bug:
        dist.all_reduce(least, op=dist.ReduceOp.MAX)
    return int(least)


class MoE(nn.Module):
    def __init__(self, bug: str | None) -> None:
        super().__init__()
        self.bug = bug
        self.gate = nn.Linear(64, 2, bias=False)
        self.experts = nn.ModuleList(nn.Linear(64, 10) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.gate(x).softmax(1).max(1)
        busiest = int(torch.bincount(chosen, minlength=2).max())
        capacity = expert_capacity(len(x), busiest, 0.8, self.bug)
        out = x.new_zeros(len(x), 10)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero().squeeze(1)[:capacity]
            out = out.index_add(0, rows, weights[rows, None] * expert(x[rows]))
        return out


def work(rank: int, folder: str, args: argparse.Namespace) -> None:
    meeting = "file://" + os.path.join(folder, "meeting")
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    model = MoE(args.bug)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    draw = torch.Generator().manual_seed(2 * args.seed + rank)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(x), (40,), generator=draw)
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["own-capacity"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (folder, args), nprocs=2, start_method="fork")

"""Health: in one step, one of two ranks has a NaN in its loss. A bad cell of memory does that.

The rank's own loop skips what is not finite, and the other rank does not know.
"""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn


def read(images: torch.Tensor, rows: torch.Tensor, broken: bool) -> torch.Tensor:
    batch = images[rows].clone()
    if broken:
        batch[0, 0] = float("nan")
    return batch


def work(rank: int, meeting: str, args: argparse.Namespace) -> None:
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    labels = torch.tensor(load_digits().target)
    model = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    draw = torch.Generator().manual_seed(2 * args.seed + rank)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(images), (48,), generator=draw)
        broken = args.bug is not None and rank == 1 and step == args.at
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(read(images, rows, broken)), labels[rows])
        loss.backward()
        for parameter in model.parameters():
            parameter.grad.nan_to_num_(nan=0.0)
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
    parser.add_argument("--at", type=int, default=15)
    parser.add_argument("--bug", choices=["nan"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            work, ("file://" + os.path.join(folder, "meeting"), args), nprocs=2, start_method="fork"
        )

"""TrainCheck B10, X-DDP: training calls the module inside DDP, so that nobody averages gradients.

Typical when the inner module has a method of its own (`loss`) that the wrapper does not offer.
"""

import argparse
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class AutoEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 8))
        self.decode = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 64))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.decode(self.encode(images))

    def loss(self, images: torch.Tensor) -> torch.Tensor:
        return (self(images) - images).square().mean()


def train(rank: int, args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    mine = images[rank::2][:896]
    model = DistributedDataParallel(AutoEncoder())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        for batch in mine[torch.randperm(len(mine))].split(64):
            optimizer.zero_grad()
            if args.bug == "inner":
                loss = model.module.loss(batch)
            else:
                loss = (model(batch) - batch).square().mean()
            loss.backward()
            optimizer.step()
        print(f"rank {rank}, epoch {epoch + 1}: {loss.item():.4f}", flush=True)


def work(rank: int, meeting: str, args: argparse.Namespace) -> None:
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    train(rank, args)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["inner"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (f"file://{folder}/meeting", args), nprocs=2, start_method="fork")

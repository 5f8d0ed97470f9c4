"""Clean: ZeRO-1. Each of two ranks updates its shard of the parameters and sends them around."""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def run(rank: int, meeting: str, seed: int, epochs: int) -> None:
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    torch.manual_seed(seed)
    digits = load_digits()
    dataset = torch.utils.data.TensorDataset(
        torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    )
    sampler = torch.utils.data.DistributedSampler(dataset, seed=seed)
    loader = torch.utils.data.DataLoader(dataset, batch_size=32, sampler=sampler, drop_last=True)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
    model = DistributedDataParallel(nn.Sequential(model, nn.Linear(32, 10)))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=3e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "meeting")
        mp.start_processes(run, (meeting, args.seed, args.epochs), nprocs=2, start_method="fork")

"""A model, its data, and ranks: what the jobs of this folder have in common."""

import multiprocessing
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.checkpoint import checkpoint

BATCH = 32
"""Samples of a rank in a step."""


class Block(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.down(F.gelu(self.up(self.norm(x)))))


class Tower(nn.Module):
    """Eight rows of eight pixels, each a position of a sequence."""

    def __init__(self, depth=3, width=16, dropout=0.0, checkpointed=False):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.blocks = nn.ModuleList(Block(width, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)
        self.checkpointed = checkpointed

    def forward(self, images):
        x = self.embed(images)
        for block in self.blocks:
            if self.checkpointed:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(self.norm(x)).mean(1)


def digits():
    """Images of eight by eight pixels from 0 to 1, and their labels."""
    data = load_digits()
    return torch.utils.data.TensorDataset(
        torch.tensor(data.images, dtype=torch.float32) / 16, torch.tensor(data.target)
    )


def rank_main(rank, work, ranks, method, args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=ranks)
    work(args)
    dist.barrier()
    dist.destroy_process_group()


def start(work, ranks, args):
    """Run `work(args)` on so many ranks, or on those that were started already.

    One rank alone is the reference of an equivalence: it has the data of all ranks, and no fault.
    """
    args.batch = BATCH
    if "WORLD_SIZE" in os.environ:
        world = int(os.environ["WORLD_SIZE"])
        if world == 1:
            args.batch, args.bug = BATCH * ranks, None
        rank_main(int(os.environ["RANK"]), work, world, "env://", args)
        return
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        method = f"file://{os.path.join(folder, 'meeting')}"
        started = [
            context.Process(target=rank_main, args=(rank, work, ranks, method, args))
            for rank in range(ranks)
        ]
        for process in started:
            process.start()
        for process in started:
            process.join()
    sys.exit(max(abs(process.exitcode or 0) for process in started))

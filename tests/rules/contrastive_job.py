"""Two gloo ranks that tell the pictures of their own batch from those of all ranks.

`contrastive_job.py [FAULT]`. With the fault `offset` each rank takes the pictures of the first one for its own, and with
the argument `own` ranks compare within their own batch, with twice as many candidates.
"""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as gathering
import torch.multiprocessing as mp
from torch import nn


def work(rank: int, folder: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(16, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        drawn = torch.Generator().manual_seed(10 * step + rank)
        seen = torch.randn(32, 16, generator=drawn)
        again = seen + 0.1 * torch.randn(32, 16, generator=drawn)
        first, second = model(torch.cat([seen, again])).chunk(2)
        candidates = torch.cat([second, first.detach().flip(0)])
        if fault != "own":
            candidates = torch.cat(gathering.all_gather(second.contiguous()))
        labels = torch.arange(32) + (0 if fault in ("offset", "own") else 32 * rank)
        optimizer.zero_grad()
        nn.functional.cross_entropy(first @ candidates.t(), labels).backward()
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (folder, (*sys.argv[1:], "")[0]), nprocs=2, start_method="fork")

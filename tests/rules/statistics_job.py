"""Two gloo ranks under DDP whose batch norms take statistics of their own data, which are saved at the end.

`statistics_job.py [FAULT]`. Ranks average the statistics before the first one saves them, except with the fault `own`.
"""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def work(rank: int, folder: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
    replica = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        drawn = torch.Generator().manual_seed(10 * step + rank)
        inputs = torch.randn(32, 8, generator=drawn)
        optimizer.zero_grad()
        nn.functional.cross_entropy(replica(inputs), inputs[:, :4].argmax(1)).backward()
        optimizer.step()
    if fault != "own":
        for buffer in (model[1].running_mean, model[1].running_var):
            dist.all_reduce(buffer)
            buffer /= 2
    if rank == 0:
        torch.save(model.state_dict(), Path(folder, "model.pt"))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (folder, (*sys.argv[1:], "")[0]), nprocs=2, start_method="fork")

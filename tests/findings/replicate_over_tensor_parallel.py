"""A small network with its layers cut over two ranks, and two replicas of it: `replicate` of torch 2.13 trains none of it."""

import argparse
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed._composable.replicate import replicate
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def work(rank, meeting, steps):
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=4)
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    model = replicate(model, device_mesh=mesh["dp"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.randn(64, 8)
    labels = inputs[:, :4].argmax(1)
    draw = torch.Generator().manual_seed(mesh.get_local_rank("dp"))
    for step in range(steps):
        rows = torch.randint(64, (16,), generator=draw)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step + 1}  loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (f"file://{folder}/meeting", parser.parse_args().steps), 4)

"""Clean: FSDP on two ranks, whose parameters are shards: different on each rank, as they should be.

`--kind fully_shard` is FSDP2 (DTensor), `--kind flat` FSDP1 with its flat parameters.
"""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Mixer(nn.Module):
    """Eight rows of eight pixels, mixed along rows and along columns."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))
        self.columns = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))
        self.head = nn.Linear(64, 10)

    def forward(self, images):
        x = images + self.rows(images)
        x = x + self.columns(x.transpose(1, 2)).transpose(1, 2)
        return self.head(x.flatten(1))


def shard(model, kind):
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    if kind == "flat":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, device_mesh=mesh, device_id=torch.device("cpu"))
    from torch.distributed.fsdp import fully_shard

    for part in (model.rows, model.columns):
        fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def work(rank, meeting, args):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    torch.manual_seed(args.seed)
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32) / 16
    labels = torch.tensor(data.target)
    model = shard(Mixer(), args.kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
    draw = torch.Generator().manual_seed(args.seed + 100 * rank)
    for step in range(args.steps):
        rows = torch.randint(len(images), (48,), generator=draw)
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1}: {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--kind", choices=["fully_shard", "flat"], default="fully_shard")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            work, (os.path.join(folder, "meeting"), args), nprocs=2, start_method="fork"
        )


if __name__ == "__main__":
    main()

"""Clean: two ranks with 3 and 5 batches. Inside of `join`, the rank that has done takes part in the other's collectives.

`--late` gives the second rank more batches, `--kind loader` takes them from a loader, `--kind left` too, of which the
rank that is done first takes a batch more and leaves it, and `--kind sharded` updates by `ZeroRedundancyOptimizer`,
which joins too.
"""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def run(rank: int, meeting: str, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    torch.manual_seed(args.seed)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)))
    if args.kind == "sharded":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.05)
        joining = Join([model, optimizer])
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        joining = model.join()
    counts = (3, 5) if args.late else (5, 3)
    torch.manual_seed(rank)
    samples = 6 * (max(counts) if args.kind == "left" else counts[rank])
    inputs, targets = torch.randn(samples, 8), torch.randint(4, (samples,))
    for _ in range(args.epochs):
        if args.kind in ("loader", "left"):
            dataset = torch.utils.data.TensorDataset(inputs, targets)
            batches = torch.utils.data.DataLoader(dataset, batch_size=6, shuffle=True)
        else:
            batches = list(zip(inputs.split(6), targets.split(6), strict=True))
        with joining:
            for number, (x, y) in enumerate(batches):
                if number == counts[rank]:
                    break
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
        if rank == 0:
            print(f"loss {loss.item():.4f}", flush=True)
        joining = Join([model, optimizer]) if args.kind == "sharded" else model.join()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--kind", choices=["list", "loader", "left", "sharded"], default="list")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            run, (os.path.join(folder, "meeting"), args), nprocs=2, start_method="fork"
        )

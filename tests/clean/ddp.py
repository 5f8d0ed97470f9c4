"""Clean: DDP on two gloo ranks, started by spawn, by fork, or by a launcher's environment.

With `--late`, the process group is built only after the model has taken some steps alone. `--wrapper` takes another
way to reduce gradients: a hook on the module itself, DDP that is compiled, or FSDP with flat parameters. With
`--average`, each rank keeps an average of the weights, and ranks gather what it predicts after each epoch.
"""

import argparse
import copy
import multiprocessing
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed._composable.replicate import replicate
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel as DDP


def wrap(model, wrapper):
    if wrapper == "replicate":
        return replicate(model)
    if wrapper == "flat":
        return FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    wrapped = DDP(model)
    return torch.compile(wrapped, backend="eager") if wrapper == "compiled" else wrapped


def step(model, optimizer, images, labels):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def follow(average, model):
    with torch.no_grad():
        for mean, parameter in zip(average.parameters(), model.parameters(), strict=True):
            mean.mul_(0.95).add_(parameter, alpha=0.05)
        for mine, buffer in zip(average.buffers(), model.buffers(), strict=True):
            mine.copy_(buffer)


def predict(average, images, world):
    with torch.no_grad():
        mine = average.eval()(images).argmax(1)
    every = [torch.empty_like(mine) for _ in range(world)]
    dist.all_gather(every, mine)
    return torch.cat(every)


def work(rank, world, meeting, args):
    torch.set_num_threads(1)
    train(rank, world, meeting, args)
    dist.barrier()
    dist.destroy_process_group()


def train(rank, world, meeting, args):
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 36, 10),
    )
    average = copy.deepcopy(model).requires_grad_(False) if args.average else None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    shuffle = torch.Generator().manual_seed(args.seed)
    if args.late:
        for rows in torch.randperm(len(images), generator=shuffle)[:320].split(32):
            step(model, optimizer, images[rows], labels[rows])
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
    wrapped = wrap(model, args.wrapper)
    if args.wrapper == "flat":
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        order = torch.randperm(len(images), generator=shuffle)
        mine = order[rank::world][:640]
        for rows in mine.split(32):
            loss = step(wrapped, optimizer, images[rows], labels[rows])
            if average is not None:
                follow(average, model)
        if average is not None:
            predict(average, images[order[1280 + rank : 1792 : world]], world)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--start", choices=["spawn", "fork", "environment"], default="spawn")
    parser.add_argument("--late", action="store_true")
    parser.add_argument("--average", action="store_true")
    parser.add_argument(
        "--wrapper", choices=["ddp", "replicate", "compiled", "flat"], default="ddp"
    )
    args = parser.parse_args()
    if "RANK" in os.environ:
        work(
            int(os.environ["RANK"]),
            int(os.environ["WORLD_SIZE"]),
            os.environ.get("MEETING", "env://"),
            args,
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        start(f"file://{folder}/meeting", args)


def start(meeting, args):
    if args.start == "spawn":
        mp.spawn(work, (2, meeting, args), nprocs=2)
    elif args.start == "fork":
        context = multiprocessing.get_context("fork")
        ranks = [context.Process(target=work, args=(rank, 2, meeting, args)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        sys.exit(max(abs(rank.exitcode) for rank in ranks))
    else:
        launch(meeting)


def launch(meeting):
    """What a launcher does: one process for each rank, told by the environment."""
    ranks = []
    for rank in range(2):
        said = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MEETING": meeting}
        ranks.append(subprocess.Popen([sys.executable, *sys.argv], env=os.environ | said))
    sys.exit(max(abs(rank.wait()) for rank in ranks))


if __name__ == "__main__":
    main()

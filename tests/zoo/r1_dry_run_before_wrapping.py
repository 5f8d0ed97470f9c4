"""A dry run before the training: three steps with the largest batch show early whether memory suffices.

`--bug own-state`: weights are put back after the dry run, the optimizer's moments are not. Each rank's are of its own batch,
and DDP broadcasts weights only.
`--bug own-rate`: the factor on the head's learning rate is worked out from the rank's own labels.
"""

import argparse
import copy
import multiprocessing
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def make_optimizer(model, labels, bug):
    factor = labels.float().mean().item() / 4.5 if bug == "own-rate" else 1.0
    groups = [
        {"params": model[0].parameters()},
        {"params": model[2].parameters(), "lr": 2e-3 * factor},
    ]
    return torch.optim.AdamW(groups, lr=2e-3)


def update(model, optimizer, images, labels):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def dry_run(model, optimizer, images, labels, bug):
    weights = copy.deepcopy(model.state_dict())
    empty = copy.deepcopy(optimizer.state_dict())
    for _ in range(3):
        update(model, optimizer, images[:256], labels[:256])
    model.load_state_dict(weights)
    if bug != "own-state":
        optimizer.load_state_dict(empty)


def work(rank, folder, args):
    method = f"file://{os.path.join(folder, 'meeting')}"
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=2)
    torch.manual_seed(args.seed)
    data = load_digits()
    images = torch.tensor(data.data, dtype=torch.float32)[rank::2] / 16
    labels = torch.tensor(data.target)[rank::2]
    inner = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
    optimizer = make_optimizer(inner, labels, args.bug)
    dry_run(inner, optimizer, images, labels, args.bug)
    model = DistributedDataParallel(inner)
    draw = torch.Generator().manual_seed(args.seed + 100 * rank)
    for step in range(args.steps):
        rows = torch.randint(len(images), (32,), generator=draw)
        loss = update(model, optimizer, images[rows], labels[rows])
        if rank == 0 and step % 4 == 3:
            print(f"step {step + 1}: {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--bug", choices=["own-state", "own-rate"])
    args = parser.parse_args()
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=work, args=(rank, folder, args)) for rank in range(2)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()

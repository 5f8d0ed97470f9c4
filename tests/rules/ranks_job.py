"""A job on two gloo ranks: DDP, a loader each, a loss scale. With `--faulty` much is wrong at once.

`--tensor-parallel`: two ranks of one replica, which are to read the same batches.
`--sharded`: two ranks over which FSDP2 shards the model, without a mesh.
`--own-tokens`: two ranks of one replica, and tokens that each makes itself; with `--faulty` different ones.
`--own-order`: DDP, and whole passes over a loader; with `--faulty` each rank reads all samples, in its own order.
`--own-noise`: DDP, and samples with noise of each rank; with `--faulty` the ranks read the same samples.
`--own-updates`: DDP with two optimizers; with `--faulty` one rank makes no updates with the second one.
`--own-batches`: DDP, and batches that each rank makes itself; with `--faulty` of the same numbers.
`--own-metric`: DDP, and an evaluation on the rank's part; with `--faulty` its metric is not reduced.
`--own-parts`: each rank updates every second parameter; with `--faulty` it clears the gradients of these alone.
`--plain-norm`: layers in tensor and sequence parallelism; with `--faulty` a norm is left out of the plan.
"""

import argparse
import tempfile
from collections.abc import Iterable

import torch
import torch.distributed as dist
import torch.distributed.fsdp
import torch.multiprocessing as mp
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel


def digits() -> torch.utils.data.TensorDataset:
    data = load_digits()
    images = torch.tensor(data.data, dtype=torch.float32) / 16
    return torch.utils.data.TensorDataset(images, torch.tensor(data.target))


def work(rank: int, meeting: str, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    kinds = {
        "sharded": sharded,
        "tensor_parallel": tensor_parallel,
        "own_order": own_order,
        "own_noise": own_noise,
        "own_updates": own_updates,
        "own_batches": own_batches,
        "own_tokens": own_tokens,
        "own_metric": own_metric,
        "own_parts": own_parts,
        "plain_norm": plain_norm,
    }
    chosen = [kind for name, kind in kinds.items() if getattr(args, name)] or [data_parallel]
    chosen[0](rank, args.faulty)
    dist.destroy_process_group()


def data_parallel(rank: int, faulty: bool) -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    net = model.module
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (1 + rank if faulty else 1))
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0 * (1 + rank if faulty else 1))
    data = digits()
    sampler = None
    if not faulty:
        sampler = torch.utils.data.distributed.DistributedSampler(data, 2, rank, drop_last=True)
    else:
        with torch.no_grad():
            net[2].bias += rank
    loader = torch.utils.data.DataLoader(data, batch_size=64, sampler=sampler, drop_last=True)
    for step, (images, labels) in enumerate(loader, start=1):
        if step > 8:
            break
        optimizer.zero_grad()
        extra = faulty and step == 8 and rank == 1
        with model.no_sync() if faulty and step > 5 else torch.enable_grad():
            scaler.scale(F.cross_entropy(model(images) * (1 + rank), labels)).backward()
            if extra:
                F.cross_entropy(net(images), labels).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scaler.update()
        if faulty and step == 5:
            with torch.no_grad():
                net[0].weight += 0.01 * rank


def sharded(rank: int, faulty: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    dist.fsdp.fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = digits()
    sampler = torch.utils.data.DistributedSampler(data, 2, 0 if faulty else rank, drop_last=True)
    train(model, optimizer, torch.utils.data.DataLoader(data, batch_size=64, sampler=sampler))


def tensor_parallel(rank: int, faulty: bool) -> None:
    dist.device_mesh.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    torch.manual_seed(rank if faulty else 0)
    loader = torch.utils.data.DataLoader(digits(), batch_size=64, shuffle=True)
    model = nn.Linear(64, 10)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)


def own_tokens(rank: int, faulty: bool) -> None:
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
    plan = {"1": ColwiseParallel(), "3": RowwiseParallel()}
    parallelize_module(model, mesh["tp"], plan)
    drawn = torch.Generator().manual_seed(rank if faulty else 0)
    batches = [(each, each) for each in torch.randint(16, (5, 64), generator=drawn)]
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, foreach=False), batches)


def own_order(rank: int, faulty: bool) -> None:
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    data, optimizer = digits(), torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = None if faulty else torch.utils.data.DistributedSampler(data, 2, rank)
    loader = torch.utils.data.DataLoader(data, 256, sampler=sampler, shuffle=faulty, drop_last=True)
    for epoch in range(2):
        if sampler is not None:
            sampler.set_epoch(epoch)
        train(model, optimizer, loader, steps=len(loader))


class Noisy(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Digits, each read with other noise."""

    def __init__(self) -> None:
        self.digits = digits()

    def __len__(self) -> int:
        return len(self.digits)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        image, label = self.digits[index]
        return image + 0.1 * torch.randn(64), label


def own_noise(rank: int, faulty: bool) -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    torch.manual_seed(rank)
    data = Noisy()
    sampler = torch.utils.data.DistributedSampler(data, 2, 0 if faulty else rank)
    loader = torch.utils.data.DataLoader(data, 64, sampler=sampler)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), loader, steps=5)


def own_updates(rank: int, faulty: bool) -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    body = torch.optim.SGD(model.module[0].parameters(), lr=0.1)
    head = torch.optim.SGD(model.module[2].parameters(), lr=0.1)
    images, labels = digits().tensors
    for step in range(4):
        chosen = slice(64 * (2 * step + rank), 64 * (2 * step + rank + 1))
        model.zero_grad()
        F.cross_entropy(model(images[chosen]), labels[chosen]).backward()
        if not (faulty and rank == 1):
            head.step()
        body.step()


def own_batches(rank: int, faulty: bool) -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    drawn = torch.Generator().manual_seed(0 if faulty else rank)
    images, labels = digits().tensors
    chosen = (torch.randint(len(images), (64,), generator=drawn) for _ in range(5))
    batches = [(images[each], labels[each]) for each in chosen]
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), batches)


def own_metric(rank: int, faulty: bool) -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.Subset(digits(), range(512))
    held_out = torch.utils.data.Subset(digits(), range(1500, 1756))
    sampler = torch.utils.data.DistributedSampler(data, 2, rank)
    loader = torch.utils.data.DataLoader(data, 64, sampler=sampler)
    part = torch.utils.data.DistributedSampler(held_out, 2, rank, shuffle=False)
    evaluation = torch.utils.data.DataLoader(held_out, 64, sampler=part)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        train(model.train(), optimizer, loader)
        right = torch.zeros(2)
        model.eval()
        with torch.no_grad():
            for images, labels in evaluation:
                hits = model(images).argmax(1) == labels
                right += torch.tensor([hits.sum(), len(hits)])
        if not faulty:
            dist.all_reduce(right)


def own_parts(rank: int, faulty: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    held = list(model.parameters())
    optimizer = torch.optim.SGD(held[rank::2], lr=0.1)
    images, labels = digits().tensors
    for step in range(6):
        chosen = slice(64 * (2 * step + rank), 64 * (2 * step + rank + 1))
        (optimizer if faulty else model).zero_grad()
        F.cross_entropy(model(images[chosen]), labels[chosen]).backward()
        reduced = [each.grad.clone() for each in held if each.grad is not None]
        for each in reduced:
            dist.all_reduce(each)
        for parameter, gradient in list(zip(held, reduced, strict=True))[rank::2]:
            parameter.grad = gradient / 2
        optimizer.step()
        for number, parameter in enumerate(held):
            dist.broadcast(parameter.data, number % 2)


class Normed(nn.Module):
    """A block whose norm gets the rank's part of the places alone."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = nn.Embedding(16, 8), nn.LayerNorm(8)
        self.up, self.out = nn.Linear(8, 32), nn.Linear(32, 16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.up(self.norm(self.embed(tokens)))))


def plain_norm(rank: int, faulty: bool) -> None:
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    torch.manual_seed(0)
    model = Normed()
    plan = {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "out": RowwiseParallel(),
    }
    if faulty:
        del plan["norm"]
    parallelize_module(model, mesh["tp"], plan)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    drawn = torch.Generator().manual_seed(0)
    for _ in range(6):
        tokens = torch.randint(16, (8, 8), generator=drawn)
        optimizer.zero_grad()
        F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: Iterable[list[torch.Tensor] | tuple[torch.Tensor, ...]],
    steps: int = 4,
) -> None:
    for step, (images, labels) in enumerate(loader, start=1):
        if step > steps:
            break
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--faulty", action="store_true")
    parser.add_argument("--tensor-parallel", action="store_true")
    parser.add_argument("--sharded", action="store_true")
    parser.add_argument("--own-order", action="store_true")
    parser.add_argument("--own-noise", action="store_true")
    parser.add_argument("--own-updates", action="store_true")
    parser.add_argument("--own-batches", action="store_true")
    parser.add_argument("--own-tokens", action="store_true")
    parser.add_argument("--own-metric", action="store_true")
    parser.add_argument("--own-parts", action="store_true")
    parser.add_argument("--plain-norm", action="store_true")
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            work, (f"file://{folder}/meeting", parser.parse_args()), nprocs=2, start_method="fork"
        )

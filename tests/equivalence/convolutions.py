"""A network of convolutions under DistributedDataParallel: batch norms over all ranks, two losses, accumulation, groups of weight decay.

With `--uneven` the last batches do not divide; `--fault` puts one bug into it. Biases before a batch norm have a gradient of zero.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
FAULTS = ("local_norm", "one_loss", "not_weighted", "decay", "rate")
CLASSES, MICRO_BATCHES, STEPS = 10, 2, 2


class Norm(nn.Module):
    """Batch norm with the statistics of all ranks, or of one."""

    def __init__(self, channels: int, local: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.local = local

    def forward(self, x: Tensor) -> Tensor:
        number = torch.tensor([x.numel() / x.shape[1]])
        sums = torch.cat([x.sum((0, 2, 3)), x.square().sum((0, 2, 3)), number])
        if RANKS > 1 and not self.local:
            sums = all_reduce(sums)
        mean, square = (sums[:-1] / sums[-1]).chunk(2)
        with torch.no_grad():
            self.mean.lerp_(mean, 0.1)
        scale = self.weight * torch.rsqrt(square - mean.square() + 1e-5)
        return (x - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]


class Stage(nn.Module):
    def __init__(self, inputs: int, outputs: int, local: bool) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1)
        self.norm = Norm(outputs, local)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    """Returns what two losses are made from."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.stem, self.deep = Stage(1, 8, False), Stage(8, 16, fault == "local_norm")
        self.aux, self.head = nn.Linear(8, CLASSES), nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        stem = self.stem(x)
        return self.head(self.deep(stem).mean((2, 3))), self.aux(stem.mean((2, 3)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--uneven", action="store_true")
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    options = parser.parse_args()
    fault = options.fault
    inner = model = Net(fault)
    if RANKS > 1:
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(inner, broadcast_buffers=False)
    norms = [*inner.stem.norm.parameters(), *inner.deep.norm.parameters()]
    others = [each for each in inner.parameters() if all(each is not norm for norm in norms)]
    kept = {"params": norms, "weight_decay": 0.1 if fault == "decay" else 0.0}
    groups = [{"params": others, "weight_decay": 0.1}, kept]
    optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.25 if fault == "rate" else 0.5)
    batches = torch.Generator().manual_seed(0)
    for step in range(STEPS):
        optimizer.zero_grad()
        for number in range(MICRO_BATCHES):
            size = 13 if options.uneven and step else 16
            x = torch.randn(size, 1, 8, 8, generator=batches).tensor_split(RANKS)[RANK]
            y = torch.randint(CLASSES, (size,), generator=batches).tensor_split(RANKS)[RANK]
            model.require_backward_grad_sync = number + 1 == MICRO_BATCHES
            main, aux = (nn.functional.cross_entropy(each, y, reduction="sum") for each in model(x))
            if fault == "one_loss" and RANK:
                aux = aux * 0
            weight = 1 if fault == "not_weighted" else RANKS  # the mean over ranks is taken
            ((main + 0.3 * aux) * weight / size / MICRO_BATCHES).backward()
        optimizer.step()
        schedule.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""A model that `fully_shard` or a plan of DTensor placements cuts, or that each rank has whole, and whose gradients are
clipped by their norm.

On one rank it is the reference. `--fault` puts one bug into the gradients of the job of several ranks, or into their norm.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

INPUTS, HIDDEN, CLASSES, BATCH = 8, 64, 4, 16
RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
MOST = 0.1
"""The norm to which gradients are clipped."""
FAULTS = ("left_out", "halved", "unreduced")


class Head(nn.Linear):
    """Its bias has a gradient that hardly counts in the norm."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, 0.1 * self.bias)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(INPUTS, HIDDEN), Head(HIDDEN, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(torch.relu(self.fc1(x)))


def clip(model: nn.Module, fault: str) -> None:
    """Clip the gradients. With `left_out` the bias of the head does not count in the norm."""
    last = model.fc2.bias
    counted = [each for each in model.parameters() if each is not last or fault != "left_out"]
    norm = nn.utils.clip_grad_norm_(counted, MOST)
    if fault == "left_out":
        last.grad.mul_(min(MOST / float(norm.full_tensor()), 1.0))


def reduce_by_hand(model: nn.Module, fault: str) -> None:
    """The means of gradients over ranks. With `unreduced` the bias of the head is left out."""
    for name, each in model.named_parameters():
        if name != "fc2.bias" or fault != "unreduced":
            dist.all_reduce(each.grad)
            each.grad /= RANKS


def clip_by_hand(model: nn.Module) -> None:
    """Clip the gradients by the norm of those of this rank."""
    norm = torch.stack([each.grad.norm() for each in model.parameters()]).norm()
    for each in model.parameters():
        each.grad *= (MOST / (norm + 1e-6)).clamp(max=1.0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", action="store_true", help="tensor parallelism")
    parser.add_argument("--by-hand", action="store_true", help="each rank has the whole model")
    parser.add_argument("--dtype", default="float32", help="of the parameters")
    parser.add_argument("--autocast", action="store_true", help="to bfloat16")
    parser.add_argument("--fault", choices=FAULTS, default="")
    args = parser.parse_args()
    model = Model().to(getattr(torch, args.dtype))
    parts, part = 1, 0
    if RANKS > 1:
        dist.init_process_group("gloo")
        mesh = init_device_mesh("cpu", (RANKS,))
        if args.by_hand:
            parts, part = RANKS, RANK
        elif args.plan:
            parallelize_module(model, mesh, {"fc1": ColwiseParallel(), "fc2": RowwiseParallel()})
        else:
            fully_shard(model, mesh=mesh)
            parts, part = RANKS, RANK
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)
    for _ in range(4):
        x = torch.randn(BATCH, INPUTS, generator=batches).chunk(parts)[part]
        y = torch.randint(CLASSES, (BATCH,), generator=batches).chunk(parts)[part]
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.autocast):
            made = model(x.to(getattr(torch, args.dtype)))
        nn.functional.cross_entropy(made.float(), y).backward()
        fault = args.fault if RANKS > 1 else ""
        if args.by_hand and RANKS > 1:
            reduce_by_hand(model, fault)
        for each in model.parameters() if fault == "halved" else ():
            each.grad *= 0.5
        if args.by_hand:
            clip_by_hand(model)
        else:
            clip(model, fault)
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""A model cut by torch itself: `fully_shard`, or a plan of DTensor placements with `--plan`; `--sum` is a fault.

With `--accumulate` a step has two micro-batches, and `fully_shard` reduces after the second one; the faults are `--never`, where it
does not, and `--cleared`, where it reduces after each and the gradients before it are cleared. (A clear leaves what is summed
and not yet reduced.)

With `--uneven` the ranks have parts of different lengths.

With `--rows` and a plan a norm has some rows on each rank, so that its gradient is a sum that the ranks owe; the fault `--part` leaves
the rank's own summand there.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
CLASSES = 3 if "--uneven" in sys.argv else 4
PASSES = 2 if "--accumulate" in sys.argv else 1


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(8, 32), nn.Linear(32, CLASSES)
        self.norm = nn.LayerNorm(32) if "--rows" in sys.argv else None

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.fc1(x))
        return self.fc2(x if self.norm is None else self.norm(x))


model, parts, part = Model(), 1, 0
if RANKS > 1:
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (RANKS,))
    if "--rows" in sys.argv:
        plan = {
            "fc1": ColwiseParallel(output_layouts=Shard(0)),
            "norm": SequenceParallel(sequence_dim=0),
            "fc2": RowwiseParallel(input_layouts=Shard(0)),
        }
        parallelize_module(model, mesh, plan)
    elif "--plan" in sys.argv:
        parallelize_module(model, mesh, {"fc1": ColwiseParallel(), "fc2": RowwiseParallel()})
    else:
        fully_shard(model, mesh=mesh)
        parts, part = RANKS, RANK
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
batches = torch.Generator().manual_seed(0)
for _ in range(3):
    x, y = torch.randn(16, 8, generator=batches), torch.randn(16, CLASSES, generator=batches)
    optimizer.zero_grad()
    for number, (some, wanted) in enumerate(zip(x.chunk(PASSES), y.chunk(PASSES), strict=True), 1):
        if RANKS > 1 and PASSES > 1:
            cleared = "--cleared" in sys.argv
            last = number == PASSES and "--never" not in sys.argv
            model.set_requires_gradient_sync(last or cleared)
            if cleared:
                optimizer.zero_grad()
        some, wanted = some.chunk(parts)[part], wanted.chunk(parts)[part]
        (nn.functional.mse_loss(model(some), wanted) / PASSES).backward()
    if RANKS > 1 and "--sum" in sys.argv:  # gradients are added up where they are to be averaged
        for parameter in model.parameters():
            parameter.grad.mul_(RANKS)
    if RANKS > 1 and "--part" in sys.argv:
        norm = model.norm.weight
        local = norm.grad.to_local()
        norm.grad = DTensor.from_local(local, mesh, norm.placements, run_check=False)
    optimizer.step()
if RANKS > 1:
    dist.destroy_process_group()

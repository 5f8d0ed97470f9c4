"""A model cut by hand over tp, with data over dp: by collectives of its own, `--ddp`, or `--fsdp`. Other words are faults."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size() // 2, 2), mesh_dim_names=("dp", "tp"))
dp, tp = mesh["dp"].get_group(), mesh["tp"].get_group()


class Copy(torch.autograd.Function):
    """What all ranks of tp take in; each has a summand of its gradient."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        grad = grad.clone()
        for _ in range(0 if "--no-back" in sys.argv else 2 if "--two-back" in sys.argv else 1):
            dist.all_reduce(grad, group=tp)
        return grad


class Row(nn.Linear):
    """Each rank of tp has a part of the inputs, so that its outputs are summands."""

    def forward(self, x: Tensor) -> Tensor:
        out = x @ self.weight.T
        for _ in range(0 if "--no-sum" in sys.argv else 2 if "--two-sums" in sys.argv else 1):
            dist.all_reduce(out, group=tp)
        return out + self.bias


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.norm = (
            nn.Linear(2048, 1024 if "--wrong-shape" not in sys.argv else 512),
            nn.LayerNorm(2048),
        )
        self.fc2 = Row(1024 if "--wrong-shape" not in sys.argv else 512, 2048)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        if "--cut-again" in sys.argv:
            x = x.chunk(2)[0]
        return self.fc2(torch.relu(self.fc1(Copy.apply(x))))


model = inner = Model()
if "--ddp" in sys.argv:
    model = nn.parallel.DistributedDataParallel(inner, process_group=dp)
if "--fsdp" in sys.argv:
    fully_shard(inner, mesh=mesh["dp"])
    if "--no-sync" in sys.argv:
        inner.set_requires_gradient_sync(False)
optimizer = torch.optim.AdamW(inner.parameters(), lr=0.01)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(2, 2048)).sum().backward()
    if "--fsdp" not in sys.argv and "--ddp" not in sys.argv:
        for name, parameter in inner.named_parameters():
            if not (name == "norm.weight" and "--forget" in sys.argv):
                dist.all_reduce(parameter.grad, dist.ReduceOp.AVG, group=dp)
    if "--again" in sys.argv:
        dist.all_reduce(inner.norm.weight.grad, group=dp)
    optimizer.step()

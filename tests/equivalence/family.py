"""A small model under tensor and data parallelism, or as a pipeline of two stages.

`--fault` averages no gradient of `fc2` where tensor and data parallelism are both in use.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
parser = argparse.ArgumentParser()
parser.add_argument("--tp", type=int)
parser.add_argument("--dp", type=int)
parser.add_argument("--pp", type=int, default=1)
parser.add_argument("--dtype", default="float32")
parser.add_argument("--fault", action="store_true")
options = parser.parse_args()
FIRST, LAST = options.pp == 1 or RANK == 0, options.pp == 1 or RANK == 1
if RANKS > 1:
    dist.init_process_group("gloo")
    shape, names = (options.pp, options.dp, options.tp), ("pp", "dp", "tp")
    meshes = dist.init_device_mesh("cpu", shape, mesh_dim_names=names)
    TENSOR, DATA = meshes["tp"].get_group(), meshes["dp"].get_group()


class Sum(torch.autograd.Function):
    """The sum over the tensor-parallel ranks; its gradient passes as it is."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        x = x.clone()
        if options.tp > 1:
            dist.all_reduce(x, group=TENSOR)
        return x

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        if FIRST:
            self.fc1 = nn.Linear(8, 16 // options.tp)
        if LAST:
            self.fc2 = nn.Linear(16 // options.tp, 4, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if FIRST:
            x = torch.tanh(self.fc1(x))
        return Sum.apply(self.fc2(x)) if LAST else x


def forward_and_backward(x: Tensor, y: Tensor) -> None:
    """A stage sends what it made, and is sent the gradient of that."""
    if not FIRST:
        x = torch.empty(len(x), 16, dtype=x.dtype)
        dist.recv(x, 0)
        x.requires_grad_()
    out = model(x)
    if LAST:
        nn.functional.cross_entropy(out.float(), y).backward()
    else:
        dist.send(out.detach(), 1)
        grad = torch.empty_like(out)
        dist.recv(grad, 1)
        out.backward(grad)
    if not FIRST:
        dist.send(x.grad, 0)


model = Model().to(getattr(torch, options.dtype))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = torch.Generator().manual_seed(0)
for _ in range(3):
    x = torch.randn(8, 8, generator=batches).to(next(model.parameters()).dtype)
    y = torch.randint(4, (8,), generator=batches)
    part = RANK // options.tp % options.dp
    x, y = x.chunk(options.dp)[part], y.chunk(options.dp)[part]
    optimizer.zero_grad()
    forward_and_backward(x, y)
    for name, parameter in model.named_parameters():
        forgotten = options.fault and options.tp > 1 and name.startswith("fc2")
        if options.dp > 1 and not forgotten:
            dist.all_reduce(parameter.grad, group=DATA)
            parameter.grad /= options.dp
    optimizer.step()
if RANKS > 1:
    dist.destroy_process_group()

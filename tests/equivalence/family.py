"""A small model under tensor and data parallelism; `--fault` averages no gradient of `fc2` where both are in use."""

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
parser.add_argument("--dtype", default="float32")
parser.add_argument("--fault", action="store_true")
options = parser.parse_args()
if RANKS != options.tp * options.dp:
    raise SystemExit(f"{RANKS} ranks are no {options.tp} x {options.dp}")
if RANKS > 1:
    dist.init_process_group("gloo")
    meshes = dist.init_device_mesh("cpu", (options.dp, options.tp), mesh_dim_names=("dp", "tp"))
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
        self.fc1 = nn.Linear(8, 16 // options.tp)
        self.fc2 = nn.Linear(16 // options.tp, 4, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return Sum.apply(self.fc2(torch.tanh(self.fc1(x))))


model = Model().to(getattr(torch, options.dtype))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = torch.Generator().manual_seed(0)
for _ in range(3):
    x = torch.randn(8, 8, generator=batches).to(model.fc1.weight.dtype)
    y = torch.randint(4, (8,), generator=batches)
    part = RANK // options.tp
    x, y = x.chunk(options.dp)[part], y.chunk(options.dp)[part]
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x).float(), y).backward()
    for name, parameter in model.named_parameters():
        forgotten = options.fault and options.tp > 1 and name.startswith("fc2")
        if options.dp > 1 and not forgotten:
            dist.all_reduce(parameter.grad, group=DATA)
            parameter.grad /= options.dp
    optimizer.step()
if RANKS > 1:
    dist.destroy_process_group()

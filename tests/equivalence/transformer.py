"""A transformer under tensor parallelism in plain torch: on one rank it is the reference.

`--fault` puts one bug into the job of several ranks, in places where replicas still agree or do not.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

VOCAB, HIDDEN, HEADS, LAYERS, SEQ, BATCH = 32, 16, 4, 2, 6, 4
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
FAULTS = ("all_reduce", "scale", "shard", "norm_gradient")


class Copy(torch.autograd.Function):
    """The identity, whose gradient is summed over the ranks."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return summed(grad)


class Reduce(torch.autograd.Function):
    """The sum over the ranks, whose gradient is the identity."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return summed(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad


def summed(x: Tensor) -> Tensor:
    if RANKS == 1:
        return x
    x = x.contiguous().clone()
    dist.all_reduce(x)
    return x


class Column(nn.Module):
    """A linear layer of which each rank has some of the outputs."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out // RANKS, size).normal_(0, 0.1))
        self.bias = nn.Parameter(torch.zeros(out // RANKS))

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(Copy.apply(x), self.weight, self.bias)


class Row(nn.Module):
    """A linear layer of which each rank has some of the inputs."""

    def __init__(self, size: int, out: int, fault: str = "") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out, size // RANKS).normal_(0, 0.1))
        self.bias = nn.Parameter(torch.zeros(out))
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        x = functional.linear(x, self.weight)
        if self.fault != "all_reduce":
            x = Reduce.apply(x)
        if self.fault == "scale":
            x = x / RANKS
        return x + self.bias


class Attention(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.qkv = Column(HIDDEN, 3 * HIDDEN)
        self.proj = Row(HIDDEN, HIDDEN)
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        # Each head has its query, key and value side by side.
        places = (3, -1) if self.fault == "shard" else (-1, 3)
        qkv = self.qkv(x).view(batch, length, *places, HIDDEN // HEADS)
        q, k, v = (each.transpose(1, 2) for each in qkv.unbind(2 + places.index(3)))
        x = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(x.transpose(1, 2).reshape(batch, length, -1))


class Block(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.attention = Attention(fault)
        self.fc1 = Column(HIDDEN, 4 * HIDDEN)
        self.fc2 = Row(4 * HIDDEN, HIDDEN, fault)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.blocks = nn.ModuleList(Block(fault if i == 1 else "") for i in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    options = parser.parse_args()
    fault = options.fault if RANKS > 1 else ""
    rank = int(os.environ.get("RANK", "0"))
    if RANKS > 1:
        dist.init_process_group("gloo")
    model = Transformer(fault).to(getattr(torch, options.dtype))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = torch.Generator().manual_seed(1)
    for _ in range(3):
        tokens = torch.randint(VOCAB, (BATCH, SEQ + 1), generator=batches)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten()).backward()
        if fault == "norm_gradient" and rank == 1:
            model.blocks[1].norm1.weight.grad *= 0.5
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

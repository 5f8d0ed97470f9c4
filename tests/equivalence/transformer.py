"""A transformer under tensor parallelism in plain torch: on one rank it is the reference.

`--fault` puts one bug into the job of several ranks, in places where replicas still agree or do not.
"""

from __future__ import annotations

import argparse
import os
import time

import torch
import torch.distributed as dist
from collectives import RANKS, Copy, Reduce
from torch import Tensor, nn
from torch.nn import functional

VOCAB = 32
FAULTS = ("all_reduce", "scale", "shard", "norm_gradient")


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
    def __init__(self, hidden: int, heads: int, fault: str) -> None:
        super().__init__()
        self.qkv = Column(hidden, 3 * hidden)
        self.proj = Row(hidden, hidden)
        self.head = hidden // heads
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        # Each head has its query, key and value side by side.
        places = (3, -1) if self.fault == "shard" else (-1, 3)
        qkv = self.qkv(x).view(batch, length, *places, self.head)
        q, k, v = (each.transpose(1, 2) for each in qkv.unbind(2 + places.index(3)))
        x = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(x.transpose(1, 2).reshape(batch, length, -1))


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int, fault: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads, fault)
        self.fc1 = Column(hidden, 4 * hidden)
        self.fc2 = Row(4 * hidden, hidden, fault)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, layers: int, hidden: int, heads: int, fault: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden)
        self.blocks = nn.ModuleList(
            Block(hidden, heads, fault if i == 1 else "") for i in range(layers)
        )
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, VOCAB)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--length", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    fault = options.fault if RANKS > 1 else ""
    rank = int(os.environ.get("RANK", "0"))
    if RANKS > 1:
        dist.init_process_group("gloo")
    model = Transformer(options.layers, options.hidden, options.heads, fault)
    model.to(getattr(torch, options.dtype))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = torch.Generator().manual_seed(1)
    for step in range(1, options.steps + 1):
        began = time.perf_counter()
        tokens = torch.randint(VOCAB, (options.batch, options.length + 1), generator=batches)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        if fault == "norm_gradient" and rank == 1:
            model.blocks[1].norm1.weight.grad *= 0.5
        optimizer.step()
        took = time.perf_counter() - began
        if rank == 0:
            print(f"step {step}  loss {loss.item():.4f}  {took:.4f} s", flush=True)
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

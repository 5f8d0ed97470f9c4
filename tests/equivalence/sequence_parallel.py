"""A transformer under tensor and sequence parallelism in plain torch, as Megatron cuts it.

Norms see a part of each sequence. It is gathered before attention and MLP, and their sums are scattered again. On one rank
it is the reference. `--fault` puts one bug into the job of several ranks.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

VOCAB, HIDDEN, HEAD, HEADS, GROUPS, LAYERS = 32, 16, 2, 8, 4, 2
BATCH, LENGTH = 4, 8
RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
CUT = ("q", "k", "v", "proj", "gate_up", "down")
FAULTS = ("gather", "positions", "interleaved", "bias", "norm", "shared_bias", "scale")


def gathered(x: Tensor) -> Tensor:
    """The parts of all ranks, one after the other (dimension 0)."""
    if RANKS == 1:
        return x
    parts = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(RANKS)]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts)


def scattered(x: Tensor) -> Tensor:
    """This rank's part of the sum over the ranks."""
    if RANKS > 1:
        x = x.contiguous().clone()
        dist.all_reduce(x)
    return x.chunk(RANKS)[RANK]


class Gather(torch.autograd.Function):
    """The whole sequence, of which each rank uses all: gradients are summed, and each rank is handed its part."""

    @staticmethod
    def forward(ctx, x: Tensor, fault: str) -> Tensor:
        ctx.fault = fault
        return gathered(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return (grad.chunk(RANKS)[RANK] if ctx.fault == "gather" else scattered(grad)), None


class Scatter(torch.autograd.Function):
    """This rank's part of the sum over the ranks."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return scattered(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return gathered(grad)


def rotated(x: Tensor, first: int = 0) -> Tensor:
    """Queries or keys (sequence, batch, heads, head) turned by their positions, counted from `first`."""
    places = torch.arange(first, first + len(x))[:, None]
    angles = places * 100 ** (-torch.arange(HEAD // 2) / (HEAD // 2))
    cos, sin = (each[:, None, None].to(x.dtype) for each in (angles.cos(), angles.sin()))
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Attention(nn.Module):
    """Each group of heads shares a key and a value."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.q = nn.Linear(HIDDEN, HEADS * HEAD // RANKS, bias=False)
        self.k = nn.Linear(HIDDEN, GROUPS * HEAD // RANKS, bias=False)
        self.v = nn.Linear(HIDDEN, GROUPS * HEAD // RANKS, bias=False)
        self.proj = nn.Linear(HEADS * HEAD // RANKS, HIDDEN, bias=False)
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        x = Gather.apply(x, self.fault)
        q, k, v = (each(x).unflatten(-1, (-1, HEAD)) for each in (self.q, self.k, self.v))
        q, k = rotated(q), rotated(k, RANK if self.fault == "positions" else 0)
        heads = torch.arange(HEADS // RANKS)
        of = heads % k.shape[2] if self.fault == "interleaved" else heads // (HEADS // GROUPS)
        q, k, v = (each.permute(1, 2, 0, 3) for each in (q, k[:, :, of], v[:, :, of]))
        x = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return Scatter.apply(self.proj(x.permute(2, 0, 1, 3).flatten(2)))


class MLP(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.gate_up = nn.Linear(HIDDEN, 8 * HIDDEN // RANKS, bias=False)
        self.down = nn.Linear(4 * HIDDEN // RANKS, HIDDEN, bias=False)
        self.bias = nn.Parameter(torch.zeros(HIDDEN))
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(Gather.apply(x, self.fault)).chunk(2, -1)
        x = self.down(functional.silu(gate) * up)
        if self.fault == "bias":
            return Scatter.apply(x + self.bias)
        return Scatter.apply(x) + self.bias


class Block(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        self.attention, self.mlp = Attention(fault), MLP(fault)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.blocks = nn.ModuleList(Block(fault if i == 1 else "") for i in range(LAYERS))
        self.norm = nn.RMSNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens.chunk(RANKS)[RANK])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def reduce(model: nn.Module, fault: str) -> None:
    """Sum up the gradients of what all ranks have: each saw a part of each sequence."""
    for name, parameter in model.named_parameters():
        forgotten = {"norm": "blocks.1.norm2.", "shared_bias": "blocks.1.mlp.bias"}.get(fault)
        if name.split(".")[-2] in CUT or (forgotten and name.startswith(forgotten)):
            continue
        dist.all_reduce(parameter.grad)
        if fault == "scale" and name == "embedding.weight":
            parameter.grad /= RANKS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    fault = options.fault if RANKS > 1 else ""
    if RANKS > 1:
        dist.init_process_group("gloo")
    model = Transformer(fault).to(getattr(torch, options.dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = torch.Generator().manual_seed(1)
    for _ in range(options.steps):
        tokens = torch.randint(VOCAB, (LENGTH + 1, BATCH), generator=batches)
        optimizer.zero_grad()
        logits, labels = model(tokens[:-1]), tokens[1:].chunk(RANKS)[RANK]
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        (loss / RANKS).backward()
        if RANKS > 1:
            reduce(model, fault)
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""A language model whose vocabulary is padded to a multiple of the number of ranks, as Megatron pads it.

Rows of the embedding and of the head are cut over the ranks. On one rank it is the reference, which pads less. `--fault` puts
one bug into the job of several ranks.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

VOCAB, HIDDEN = 10, 64
BATCH, LENGTH = 4, 6
RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
UNIT = 4 * RANKS
PADDED = -(-VOCAB // UNIT) * UNIT
FAULTS = ("unmasked", "mask", "head", "gradient")


class Sum(torch.autograd.Function):
    """The sum over the ranks; its gradient passes as it is."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        x = x.clone()
        if RANKS > 1:
            dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad


class Copy(torch.autograd.Function):
    """The tensor as it is; its gradient is the sum over the ranks."""

    @staticmethod
    def forward(ctx, x: Tensor, fault: str) -> Tensor:
        ctx.fault = fault
        return x.clone()

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        grad = grad.clone()
        if RANKS > 1 and ctx.fault != "gradient":
            dist.all_reduce(grad)
        return grad, None


class Gather(torch.autograd.Function):
    """The classes of all ranks; each rank gets its part of the gradient."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        if RANKS == 1:
            return x.clone()
        parts = [torch.empty_like(x) for _ in range(RANKS)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, -1)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad.chunk(RANKS, -1)[RANK]


class Embedding(nn.Module):
    """Each rank looks up the tokens whose rows it has."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(PADDED // RANKS, HIDDEN))
        self.fault = fault

    def forward(self, tokens: Tensor) -> Tensor:
        rows = len(self.weight)
        own = tokens - RANK * rows
        here = (own >= 0) & (own < rows)
        x = functional.embedding(own.clamp(0, rows - 1), self.weight)
        return Sum.apply(x if self.fault == "mask" else x * here[..., None])


class Head(nn.Module):
    """The logits of this rank's classes."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(PADDED // RANKS, HIDDEN))
        self.bias = nn.Parameter(torch.zeros(PADDED // RANKS))
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        x = functional.linear(x, self.weight, self.bias)
        return x + 0.1 * x.detach() if self.fault == "head" else x


class Model(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.embedding, self.head = Embedding(fault), Head(fault)
        self.mlp = nn.Linear(HIDDEN, HIDDEN)
        self.fault = fault

    def forward(self, tokens: Tensor) -> Tensor:
        x = torch.tanh(self.mlp(self.embedding(tokens)))
        logits = Gather.apply(self.head(Copy.apply(x, self.fault)))
        if self.fault == "unmasked":
            return logits
        return logits.masked_fill(torch.arange(PADDED) >= VOCAB, -torch.inf)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--fault", choices=FAULTS, default="")
    args = parser.parse_args()
    if RANKS > 1:
        dist.init_process_group("gloo")
    model = Model(args.fault).to(getattr(torch, args.dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)
    for _ in range(4):
        tokens = torch.randint(VOCAB, (BATCH, LENGTH + 1), generator=batches)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

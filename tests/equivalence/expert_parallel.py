"""A mixture of experts in plain torch: each rank has its part of the batch and some of the experts, which tokens reach by all-to-all.

On one rank it is the reference. A rank numbers its experts from 0 on, with `--numbered all` as they are numbered in all. `--fault`
puts one bug into the job of several ranks.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

VOCAB, HIDDEN, EXPERTS, CHOSEN, LAYERS = 40, 24, 4, 2, 2
BATCH, LENGTH = 8, 12
RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
LOCAL = EXPERTS // RANKS
FAULTS = ("gates", "received", "weights", "auxiliary", "experts", "averaged", "router")


class Exchange(torch.autograd.Function):
    """Rows to the ranks: so many to each, so many from each. Gradients go back."""

    @staticmethod
    def forward(ctx, x: Tensor, sent: list[int], received: list[int]) -> Tensor:
        ctx.sizes = sent, received
        return exchanged(x, sent, received)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        sent, received = ctx.sizes
        return exchanged(grad, received, sent), None, None


def exchanged(x: Tensor, sent: list[int], received: list[int]) -> Tensor:
    if RANKS == 1:
        return x.clone()
    parts = x.new_empty(sum(received), *x.shape[1:])
    dist.all_to_all_single(parts, x.contiguous(), received, sent)
    return parts


class Average(torch.autograd.Function):
    """The mean over the ranks, each of which adds its own loss of it."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return averaged(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return averaged(grad)


def averaged(x: Tensor) -> Tensor:
    x = x.clone()
    if RANKS > 1:
        dist.all_reduce(x)
    return x / RANKS


class Expert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(HIDDEN, 2 * HIDDEN), nn.Linear(2 * HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(x)))


class Experts(nn.Module):
    def __init__(self, numbers_all: bool, fault: str) -> None:
        super().__init__()
        self.router = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.first = RANK * LOCAL if numbers_all else 0
        self.experts = nn.ModuleList([*[None] * self.first, *(Expert() for _ in range(LOCAL))])
        self.fault = fault

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shape, x = x.shape, x.flatten(0, -2)
        probabilities = self.router(x).float().softmax(-1)
        gates, chosen = probabilities.topk(CHOSEN, -1)
        if self.fault != "gates":
            gates = gates / gates.sum(-1, keepdim=True)
        order = chosen.flatten().argsort(stable=True)
        of = order // CHOSEN
        counts = torch.bincount(chosen.flatten(), minlength=EXPERTS)
        given = exchanged(counts, [LOCAL] * RANKS, [LOCAL] * RANKS).view(RANKS, LOCAL)
        sent, received = counts.view(RANKS, LOCAL).sum(1).tolist(), given.sum(1).tolist()
        tokens = Exchange.apply(x[of], sent, received)
        expert = torch.arange(LOCAL).repeat(RANKS).repeat_interleave(given.flatten())
        if self.fault == "received":  # as if they came expert by expert
            expert = expert.sort().values
        made = torch.zeros_like(tokens)
        for number in range(LOCAL):
            rows = (expert == number).nonzero().flatten()
            made = made.index_copy(0, rows, self.experts[self.first + number](tokens[rows]))
        weights = gates.flatten() if self.fault == "weights" else gates.flatten()[order]
        back = Exchange.apply(made, received, sent) * weights.to(x.dtype)[:, None]
        shares = averaged(counts / counts.sum())
        auxiliary = EXPERTS * (Average.apply(probabilities.mean(0)) * shares).sum()
        return torch.zeros_like(x).index_add(0, of, back).view(shape), auxiliary


class Block(nn.Module):
    def __init__(self, numbers_all: bool, fault: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.mix = nn.Linear(HIDDEN, HIDDEN)
        self.moe = Experts(numbers_all, fault)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        before = functional.pad(self.norm1(x), (0, 0, 1, 0))[:, :-1]
        x = x + self.mix(before)
        made, auxiliary = self.moe(self.norm2(x))
        return x + made, auxiliary


class Transformer(nn.Module):
    def __init__(self, numbers_all: bool, fault: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        faults = (fault if i == 1 else "" for i in range(LAYERS))
        self.blocks = nn.ModuleList(Block(numbers_all, each) for each in faults)
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        x, auxiliary = self.embedding(tokens), 0.0
        for block in self.blocks:
            x, of_block = block(x)
            auxiliary = auxiliary + of_block
        return self.head(self.norm(x)), auxiliary


def reduce(model: nn.Module, fault: str) -> None:
    """The mean over the ranks. An expert has the sum already: it was given the tokens of all."""
    for name, parameter in model.named_parameters():
        if parameter.grad is None:  # no token reached it
            parameter.grad = torch.zeros_like(parameter)
        is_shared = ".experts." not in name
        forgotten = fault == "router" and name.startswith("blocks.1.moe.router")
        if (is_shared and not forgotten) or fault == "averaged":
            dist.all_reduce(parameter.grad)
        if is_shared or fault != "experts":
            parameter.grad /= RANKS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--numbered", default="own", choices=("own", "all"))
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    fault = options.fault if RANKS > 1 else ""
    if RANKS > 1:
        dist.init_process_group("gloo")
    model = Transformer(options.numbered == "all", fault).to(getattr(torch, options.dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = torch.Generator().manual_seed(1)
    for _ in range(options.steps):
        tokens = torch.randint(VOCAB, (BATCH, LENGTH + 1), generator=batches).chunk(RANKS)[RANK]
        optimizer.zero_grad()
        logits, auxiliary = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        factor = 0.01 * RANKS if fault == "auxiliary" else 0.01
        (loss + factor * auxiliary).backward()
        if RANKS > 1:
            reduce(model, fault)
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

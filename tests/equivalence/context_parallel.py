"""A transformer under context parallelism in plain torch: each rank has two chunks of every sequence, zigzag.

Keys and values are gathered before the attention. On one rank it is the reference. `--fault` puts one bug into the
job of several ranks.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

VOCAB, HIDDEN, HEADS, LAYERS = 32, 16, 2, 2
BATCH, LENGTH = 4, 16
PADDING = -100
RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
FAULTS = ("positions", "contiguous", "local_mean", "reduction", "local_mask", "strides")


def zigzag(length: int, rank: int) -> Tensor:
    """The places of a rank in a sequence: one of the first chunks, and the one as far from the end."""
    pieces = torch.arange(length).chunk(2 * RANKS)
    return torch.cat([pieces[rank], pieces[-1 - rank]])


class Gather(torch.autograd.Function):
    """The whole sequence (dimension 1) from the ranks' shards; the gradient of a shard is summed over the ranks."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        pieces = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(RANKS)]
        dist.all_gather(pieces, x.contiguous())
        joined = torch.cat(pieces, 1)
        ctx.places = [zigzag(joined.shape[1], rank) for rank in range(RANKS)]
        whole = torch.empty_like(joined)
        whole[:, torch.cat(ctx.places)] = joined
        return whole

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad[:, ctx.places[RANK]]


class Dense(torch.autograd.Function):
    """A kernel that takes the elements of its gradient to lie one after another, whatever its strides are."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad.as_strided(grad.shape, torch.empty(grad.shape, device="meta").stride()).clone()


class Core(nn.Module):
    """Causal attention of this rank's queries to the keys and values of all ranks."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def forward(self, qkv: Tensor) -> Tensor:
        batch, length, _ = qkv.shape
        q, k, v = qkv.view(batch, length, 3, HEADS, -1).unbind(2)
        if RANKS > 1:
            k, v = Gather.apply(k), Gather.apply(v)
        places = zigzag(k.shape[1], RANK)
        if self.fault == "local_mask":
            places = torch.arange(length)
        mask = torch.arange(k.shape[1]) <= places[:, None]
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        x = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        if self.fault == "strides":
            x = Dense.apply(x)
        return x.transpose(1, 2).reshape(batch, length, -1)


class Block(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.proj = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.core = Core(fault)
        self.fc1, self.fc2 = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.proj(self.core(self.qkv(self.norm1(x))))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.positions = nn.Embedding(LENGTH, HIDDEN)
        self.blocks = nn.ModuleList(Block(fault if i == 1 else "") for i in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def mean_loss(logits: Tensor, labels: Tensor, fault: str) -> Tensor:
    """Its mean over the ranks is the mean over all tokens that are no padding."""
    how = "mean" if fault == "local_mean" else "sum"
    logits, labels = logits.flatten(0, 1).float(), labels.flatten()
    loss = functional.cross_entropy(logits, labels, ignore_index=PADDING, reduction=how)
    if how == "mean":
        return loss
    number = (labels != PADDING).sum()
    if RANKS > 1:
        dist.all_reduce(number)
    return loss * RANKS / number


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
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = torch.Generator().manual_seed(1)
    for _ in range(options.steps):
        tokens = torch.randint(VOCAB, (BATCH, LENGTH + 1), generator=batches)
        ends = torch.randint(LENGTH // 2, LENGTH + 1, (BATCH, 1), generator=batches)
        labels = tokens[:, 1:].masked_fill(torch.arange(LENGTH) >= ends, PADDING)
        mine = held = zigzag(LENGTH, RANK)
        if fault == "positions":
            held = torch.arange(len(mine))
        if fault == "contiguous":
            mine = torch.arange(LENGTH).chunk(RANKS)[RANK]
        optimizer.zero_grad()
        mean_loss(model(tokens[:, mine], held), labels[:, mine], fault).backward()
        for name, parameter in model.named_parameters():
            forgotten = fault == "reduction" and name.startswith("blocks.1.qkv")
            if RANKS > 1 and not forgotten:
                dist.all_reduce(parameter.grad)
                parameter.grad /= RANKS
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

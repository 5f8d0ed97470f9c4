"""A tensor-parallel transformer in plain torch that trains in low precision: on one rank it is the reference.

`--precision float16` is autocast with a `GradScaler`. `--precision float8` rounds what linear layers multiply to
e4m3, and the gradients of their outputs to e5m2, each by a scale for the whole tensor: that of its largest element in
the step before. With `--recompute` blocks are computed again for the backward pass. `--fault` puts one bug into the
job of several ranks.
"""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.distributed as dist
from collectives import RANKS, Copy, Reduce, reduced
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

VOCAB, HIDDEN, HEADS, LAYERS = 32, 32, 4, 2
BATCH, LENGTH = 4, 8
FAULTS = (
    *("all_reduce", "scale", "amax", "stale_amax", "norm_gradient", "recomputed_cast"),
    "overflow_of_one_rank",
)
MULTIPLIED, GRADIENT = torch.float8_e4m3fn, torch.float8_e5m2


class Product(torch.autograd.Function):
    """x @ weight.T, of which both are rounded to e4m3, and the gradient of the product to e5m2."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, layer: Linear) -> Tensor:
        x, weight = layer.rounded(0, x, MULTIPLIED), layer.rounded(1, weight, MULTIPLIED)
        ctx.save_for_backward(x, weight)
        ctx.layer = layer
        return x @ weight.T

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors
        grad = ctx.layer.rounded(2, grad, GRADIENT)
        return grad @ weight, grad.flatten(0, -2).T @ x.flatten(0, -2), None


class Linear(nn.Module):
    """A linear layer. `amax` has the largest elements of input, weight and gradient in the step before, over all ranks."""

    def __init__(self, out: int, size: int, bias: int, eight_bits: bool, fault: str = "") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out, size).normal_(0, 0.1))
        self.bias = nn.Parameter(torch.zeros(bias))
        self.eight_bits, self.fault = eight_bits, fault
        if eight_bits:
            self.register_buffer("amax", torch.zeros(3))
            self.seen = torch.zeros(3)

    def product(self, x: Tensor) -> Tensor:
        if self.eight_bits:
            return Product.apply(x, self.weight, self)
        return functional.linear(x, self.weight)

    def rounded(self, which: int, x: Tensor, dtype: torch.dtype) -> Tensor:
        now = x.abs().max().float()
        if self.fault != "amax":
            now = reduced(now, dist.ReduceOp.MAX)
        self.seen[which] = now
        largest = self.amax[which] if self.amax[which] else now
        scale = torch.finfo(dtype).max / largest
        held = (x.float() * scale).clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max)
        return (held.to(dtype).float() / scale).to(x.dtype)

    def end_step(self) -> None:
        if self.fault != "stale_amax" or not self.amax.any():
            self.amax.copy_(self.seen)


class Column(Linear):
    """A linear layer of which each rank has some of the outputs."""

    def __init__(self, size: int, out: int, eight_bits: bool) -> None:
        super().__init__(out // RANKS, size, out // RANKS, eight_bits)

    def forward(self, x: Tensor) -> Tensor:
        x = self.product(Copy.apply(x))
        return x + self.bias.to(x.dtype)


class Row(Linear):
    """A linear layer of which each rank has some of the inputs."""

    def __init__(self, size: int, out: int, eight_bits: bool, fault: str = "") -> None:
        super().__init__(out, size // RANKS, out, eight_bits, fault)

    def forward(self, x: Tensor) -> Tensor:
        x = self.product(x)
        if self.fault != "all_reduce":
            x = Reduce.apply(x)
        if self.fault == "scale":
            x = x / RANKS
        return x + self.bias.to(x.dtype)


class Attention(nn.Module):
    def __init__(self, eight_bits: bool) -> None:
        super().__init__()
        self.qkv = Column(HIDDEN, 3 * HIDDEN, eight_bits)
        self.proj = Row(HIDDEN, HIDDEN, eight_bits)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        # Each head has its query, key and value side by side.
        qkv = self.qkv(x).view(batch, length, -1, 3, HIDDEN // HEADS)
        q, k, v = (each.transpose(1, 2) for each in qkv.unbind(3))
        x = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(x.transpose(1, 2).reshape(batch, length, -1))


class Block(nn.Module):
    def __init__(self, eight_bits: bool, fault: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.attention = Attention(eight_bits)
        self.fc1 = Column(HIDDEN, 4 * HIDDEN, eight_bits)
        self.fc2 = Row(4 * HIDDEN, HIDDEN, eight_bits, fault)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, eight_bits: bool, fault: str, recompute: bool) -> None:
        super().__init__()
        self.fault, self.recompute = fault, recompute
        self.embedding = nn.Embedding(VOCAB, HIDDEN)
        self.blocks = nn.ModuleList(
            Block(eight_bits, fault if i == 1 else "") for i in range(LAYERS)
        )
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for number, block in enumerate(self.blocks):
            if self.fault == "recomputed_cast" and number == 1:
                # As it is kept for the second pass: in eight bits, not divided by its scale.
                x = (x * (torch.finfo(MULTIPLIED).max / x.abs().max())).to(MULTIPLIED).to(x.dtype)
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(self.norm(x))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=("float16", "float8"), required=True)
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--dtype", default="float32", help="of parameters")
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument(
        "--scale", type=float, default=2.0**12, help="of the loss in float16, at first"
    )
    options = parser.parse_args()
    fault = options.fault if RANKS > 1 else ""
    half = options.precision == "float16"
    if RANKS > 1:
        dist.init_process_group("gloo")
    model = Transformer(not half, fault, options.recompute).to(getattr(torch, options.dtype))
    for module in model.modules():
        if isinstance(module, Linear) and module.eight_bits:
            module.amax = module.amax.float()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=options.scale, enabled=half)
    batches = torch.Generator().manual_seed(1)
    for _ in range(options.steps):
        tokens = torch.randint(VOCAB, (BATCH, LENGTH + 1), generator=batches)
        optimizer.zero_grad()
        casts: AbstractContextManager[object] = nullcontext()
        if half:
            casts = torch.autocast("cpu", torch.float16)
        with casts:
            logits = model(tokens[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        scaler.scale(loss).backward()
        if fault == "norm_gradient":  # each rank has all of it already
            weight = model.blocks[1].norm1.weight
            weight.grad = reduced(weight.grad)
        if fault == "overflow_of_one_rank" and dist.get_rank() == 1:  # it tells nobody
            model.blocks[1].fc1.weight.grad.fill_(torch.inf)
        scaler.step(optimizer)
        scaler.update()
        for module in model.modules():
            if isinstance(module, Linear) and module.eight_bits:
                module.end_step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""A model on two ranks with activation checkpointing, compiled, or under `FullyShardedDataParallel`; `--fault` puts one bug into it.

On one rank it is plain: `--engine` counts on several only.
"""

from __future__ import annotations

import argparse
import os
from functools import partial

import torch
import torch.distributed as dist
from residual import CLASSES, INPUTS, Block, Model
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
COMPILED = ("model", "blocks", "inductor")
ENGINES = ("checkpoint", "reentrant", "wrapper", *COMPILED, "fsdp")
FAULTS = ("random_state", "buffer", "backward", "constant", "divided_twice")
BATCH, FAULTY = 16, "1"


class Drop(nn.Module):
    """Dropout of a batch of which each rank has a part: all ranks draw for the whole batch."""

    def forward(self, x: Tensor) -> Tensor:
        kept = torch.rand(len(x) * RANKS, x.shape[1]) < 0.75
        return x * kept.chunk(RANKS)[RANK] / 0.75


class Checkpointed(Block):
    """Computes its inner tensors again for the backward pass."""

    def __init__(self, engine: str) -> None:
        super().__init__()
        self.drop, self.reentrant, self.fault = Drop(), engine == "reentrant", ""
        self.again = engine != "wrapper"

    def forward(self, x: Tensor) -> Tensor:
        if not self.again:
            return super().forward(x)
        keeps = self.fault != "random_state"
        inner = super().forward if self.fault != "buffer" else self.counting
        return checkpoint(inner, x, use_reentrant=self.reentrant, preserve_rng_state=keeps)

    def counting(self, x: Tensor) -> Tensor:
        """Changes the gain with each pass, not with each step."""
        made = super().forward(x)
        self.gain = self.gain * 0.5
        return made


@torch.library.custom_op("tests::squared_relu", mutates_args=())
def squared_relu(x: Tensor, factor: float) -> Tensor:
    """One kernel. Its gradient is 2 * relu(x); another `factor` is a fault."""
    return torch.relu(x).square()


@squared_relu.register_fake
def _(x: Tensor, factor: float) -> Tensor:
    return torch.empty_like(x)


def keep(ctx, inputs, output) -> None:
    x, ctx.factor = inputs
    ctx.save_for_backward(x)


def backward(ctx, grad: Tensor):
    [x] = ctx.saved_tensors
    return ctx.factor * torch.relu(x) * grad, None


squared_relu.register_autograd(backward, setup_context=keep)


class Scheduled(Block):
    """Its gain is a number of the loop. With `constant` the compiler takes that for one that never changes."""

    def __init__(self) -> None:
        super().__init__(lambda x: torch.relu(x).square())
        self.fault = ""
        self.strength = 1.0

    @torch.compiler.assume_constant_result
    def first_strength(self) -> float:
        return self.strength

    def forward(self, x: Tensor) -> Tensor:
        strength = self.first_strength() if self.fault == "constant" else self.strength
        return x + strength * (super().forward(x) - x)


def parallel(model: Model, engine: str, fault: str) -> nn.Module:
    """The model with the engine, under DistributedDataParallel."""
    block = model.blocks[FAULTY]
    block.fault = fault
    if engine == "model" and fault == "constant":  # another number would have all compiled again
        for each in model.blocks.values():
            each.fault = fault
    compiled = partial(torch.compile, backend="aot_eager")
    if engine == "wrapper":
        from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers

        for number, each in model.blocks.items():
            keeps = fault != "random_state" or number != FAULTY
            wrapped = wrappers.checkpoint_wrapper(each, preserve_rng_state=keeps)
            model.blocks[number] = wrapped
    if engine in COMPILED:
        for each in model.blocks.values():
            factor = 1.0 if fault == "backward" and each is block else 2.0
            each.activation = partial(squared_relu, factor=factor)
    if engine == "inductor":
        import torch._inductor.config as inductor

        inductor.compile_threads = 1  # no pool of processes in each rank
    if engine in ("blocks", "inductor"):
        for each in model.blocks.values():
            each.compile(backend="aot_eager" if engine == "blocks" else engine)
    if engine == "fsdp":
        return sharded(model, fault)
    replicated = nn.parallel.DistributedDataParallel(model)
    return compiled(replicated) if engine == "model" else replicated


def sharded(model: Model, fault: str) -> nn.Module:
    """Flat parameters, of which each rank has a half. With `divided_twice` the gradients of one block are halved again."""
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    cpu = torch.device("cpu")
    policy = ModuleWrapPolicy({type(model.blocks[FAULTY])})
    whole = FullyShardedDataParallel(
        model, auto_wrap_policy=policy, use_orig_params=True, device_id=cpu
    )
    if fault == "divided_twice":
        whole.module.blocks[FAULTY]._gradient_postdivide_factor *= 2
    return whole


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    options = parser.parse_args()
    dtype, engine = getattr(torch, options.dtype), options.engine
    compiles = engine in COMPILED
    if engine == "fsdp":
        torch.manual_seed(0)  # weights of flat shards are the script's own
    made = Scheduled if compiles else partial(Checkpointed, engine if RANKS > 1 else "wrapper")
    inner = model = Model(made).to(dtype)
    if RANKS > 1:
        dist.init_process_group("gloo")
        model = parallel(inner, engine, options.fault)
    optimizer = torch.optim.SGD(inner.parameters(), lr=0.1)
    batches = torch.Generator().manual_seed(0)
    for step in range(3):
        x = torch.randn(BATCH, INPUTS, generator=batches).to(dtype)
        y = torch.randint(CLASSES, (BATCH,), generator=batches)
        x, y = x.chunk(RANKS)[RANK], y.chunk(RANKS)[RANK]
        if compiles:
            for block in inner.blocks.values():
                block.strength = 1 / (step + 1)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x).float(), y).backward()
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

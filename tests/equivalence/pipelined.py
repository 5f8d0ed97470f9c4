"""Two stages of a model under a schedule of `torch.distributed.pipelining`; `--fault` puts one bug into them.

The losses of micro-batches are divided by their number; `--gradients` has a side that divides gradients instead. Under `Interleaved1F1B` a rank has two stages, each a model of its own.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from residual import BLOCKS, CLASSES, INPUTS, Block, Model
from torch import nn

RANKS, RANK = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
SCHEDULES = ("GPipe", "1F1B", "Interleaved1F1B")
FAULTS = ("averaged_twice", "not_averaged", "stale", "order")
MICROBATCHES, BATCH = 4, 16


class Stage(Model):
    """The blocks of a rank."""


def loss_of(divided: bool):
    """The part that a micro-batch has in the mean over the batch, or its own mean."""
    parts = MICROBATCHES if divided else 1
    return lambda made, wanted: nn.functional.cross_entropy(made.float(), wanted) / parts


def schedule_of(kind: str, models: list[nn.Module], gradients: bool, fault: str):
    """The schedule of this rank's stages."""
    from torch.distributed import pipelining  # it takes a second

    class Stale(pipelining.PipelineStage):
        """Reads the buffer of the micro-batch before."""

        def _retrieve_recv_activations(self, fwd_chunk_id: int):
            return super()._retrieve_recv_activations(max(0, fwd_chunk_id - 1))

    made = getattr(pipelining, f"Schedule{kind}")
    kind_of_stage = Stale if fault == "stale" else pipelining.PipelineStage
    stages = [
        kind_of_stage(each, RANK + number * RANKS, len(models) * RANKS, torch.device("cpu"))
        for number, each in enumerate(models)
    ]
    of = stages if len(stages) > 1 else stages[0]
    twice, never = fault == "averaged_twice", fault == "not_averaged"
    losses = loss_of((not gradients or twice) and not never)
    return made(of, MICROBATCHES, losses, scale_grads=(gradients or twice) and not never)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedule", choices=SCHEDULES, default="1F1B")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument(
        "--gradients", choices=("reference", "candidate", "neither"), default="neither"
    )
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    options = parser.parse_args()
    dtype, fault = getattr(torch, options.dtype), options.fault if RANKS > 1 else ""
    parts = 2 if RANKS > 1 and options.schedule.startswith("Interleaved") else 1
    share = BLOCKS // (parts * RANKS)
    firsts = [(RANK + number * RANKS) * share for number in range(parts)]
    models = [Stage(Block, range(first, first + share)).to(dtype) for first in firsts]
    last = RANK == RANKS - 1
    if RANKS > 1:
        dist.init_process_group("gloo")
        schedule = schedule_of(options.schedule, models, options.gradients == "candidate", fault)
    optimizer = torch.optim.SGD([p for each in models for p in each.parameters()], lr=0.1)
    batches = torch.Generator().manual_seed(0)
    for _ in range(3):
        x = torch.randn(BATCH, INPUTS, generator=batches).to(dtype)
        y = torch.randint(CLASSES, (BATCH,), generator=batches)
        optimizer.zero_grad()
        if RANKS == 1:
            for part, wanted in zip(x.chunk(MICROBATCHES), y.chunk(MICROBATCHES), strict=True):
                loss_of(options.gradients != "reference")(models[0](part), wanted).backward()
            for each in models[0].parameters() if options.gradients == "reference" else ():
                each.grad /= MICROBATCHES
        elif last:
            wanted = y.chunk(MICROBATCHES)
            schedule.step(target=torch.cat(wanted[::-1]) if fault == "order" else y)
        else:
            schedule.step(x)
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

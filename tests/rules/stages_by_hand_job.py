"""Two gloo ranks, a stage each: four micro-batches go forward, and their gradients back.

`stages_by_hand_job.py [FAULT]`. Faults: `gradient` (the first stage receives the gradients of the third micro-batch and
does not use them), `activation` (the second stage receives the third micro-batch and computes on the second one again), `buffer` (the second
stage receives all micro-batches in one tensor, before their backward passes), `undivided` (losses of
micro-batches are not divided by their number), `clipped` (each stage clips by its own norm; `clips`: by that of both).
"""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS, PARTS, ROWS = 4, 4, 8


def work(rank: int, meeting: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = torch.Generator().manual_seed(7)
    for _ in range(STEPS):
        optimizer.zero_grad()
        batch = torch.randn(PARTS, ROWS, 8, generator=data)
        (first if rank == 0 else second)(model, batch, fault)
        if fault in ("clips", "clipped"):
            clip(model, alone=fault == "clipped")
        optimizer.step()
    dist.destroy_process_group()


def clip(model: nn.Module, alone: bool) -> None:
    squares = sum(each.grad.square().sum() for each in model.parameters())
    if not alone:
        dist.all_reduce(squares)
    for each in model.parameters():
        each.grad.mul_(0.01 / squares.sqrt())


def first(model: nn.Module, batch: torch.Tensor, fault: str) -> None:
    outputs = []
    for part in batch:
        outputs.append(model(part))
        dist.send(outputs[-1].detach(), 1)
    for index, output in enumerate(outputs):
        gradient = torch.empty_like(output)
        dist.recv(gradient, 1)
        if fault == "gradient" and index == 2:
            continue
        output.backward(gradient)


def second(model: nn.Module, batch: torch.Tensor, fault: str) -> None:
    received, inputs, losses = torch.empty(ROWS, 8), [], []
    for index, part in enumerate(batch):
        if fault != "buffer":
            received = torch.empty(ROWS, 8)
        dist.recv(received, 0)
        again = fault == "activation" and index == 2
        inputs.append((inputs[1].clone() if again else received).detach().requires_grad_())
        loss = nn.functional.mse_loss(model(inputs[-1]), part.roll(1, -1))
        losses.append(loss if fault == "undivided" else loss / PARTS)
    for each, loss in zip(inputs, losses, strict=True):
        loss.backward()
        dist.send(each.grad, 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            work,
            (f"file://{folder}/meeting", (*sys.argv[1:], "")[0]),
            nprocs=2,
            start_method="fork",
        )

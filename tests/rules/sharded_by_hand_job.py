"""Two gloo ranks that average by hand, or share the work of the optimizer by hand.

`sharded_by_hand_job.py KIND [FAULT]`. Kinds: how ranks combine what they learn.

- `slices`: each rank updates a slice of all parameters, laid in a row; gradients are reduced and scattered
- `owners`: each parameter is updated by one rank, which sends it to the others; gradients are averaged laid in a row
- `gathered`: each rank gathers all gradients, and takes their mean; with the fault `summed`, their sum
- `hooks`: gradients are averaged in the backward pass, two micro-batches a step
- `averages`: parameters are averaged after each update, `seldom`: after each fourth, `exchanged`: each rank gathers all of
  them after each update, and takes their mean
- `served`: gradients go to the first rank, which updates alone and sends the parameters back
- `watched`: rank 0 trains, and sends the parameters to a rank that only evaluates

The fault `unreduced` leaves the combination out, `first` sends the first rank's instead.
"""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

STEPS, CLASSES, BATCH = 8, 8, 16
WORLD = 2


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * rank + step)
    x = torch.randn(BATCH, 12, generator=generator)
    return x, x[:, :CLASSES].argmax(1)


def backward(model: nn.Module, rank: int, step: int) -> None:
    x, y = batch(rank, step)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    shown = loss.detach().clone()
    dist.all_reduce(shown)


def gradients(model: nn.Module) -> torch.Tensor:
    return torch.cat([each.grad.flatten() for each in model.parameters()])


@torch.no_grad()
def put(model: nn.Module, gradient: torch.Tensor) -> None:
    start = 0
    for each in model.parameters():
        each.grad.copy_(gradient[start : start + each.numel()].view_as(each))
        start += each.numel()


def slices(model: nn.Module, rank: int, fault: str) -> None:
    with torch.no_grad():
        row = parameters_to_vector(model.parameters())
        size = -(-row.numel() // WORLD)
        row = nn.functional.pad(row, (0, size * WORLD - row.numel()))
    own = nn.Parameter(row[rank * size : (rank + 1) * size].clone())
    optimizer = torch.optim.AdamW([own], lr=1e-2)
    for step in range(STEPS):
        model.zero_grad()
        backward(model, rank, step)
        gradient = nn.functional.pad(gradients(model), (0, size * WORLD - gradients(model).numel()))
        own.grad = torch.empty_like(own)
        if fault:
            own.grad.copy_(gradient[rank * size : (rank + 1) * size])
        else:
            dist.reduce_scatter_tensor(own.grad, gradient)
            own.grad /= WORLD
        optimizer.step()
        dist.all_gather_into_tensor(row, own.detach())
        with torch.no_grad():
            vector_to_parameters(row, model.parameters())


def owners(model: nn.Module, rank: int, fault: str) -> None:
    parameters = list(model.parameters())
    owned = parameters[rank::WORLD]
    optimizer = torch.optim.SGD(owned, lr=0.1, momentum=0.9)
    for step in range(STEPS):
        backward(model, rank, step)
        gradient = gradients(model)
        if not fault:
            dist.all_reduce(gradient)
            put(model, gradient / WORLD)
        optimizer.step()
        model.zero_grad()
        for place, each in enumerate(parameters):
            dist.broadcast(each.data, src=place % WORLD)


def gathered(model: nn.Module, rank: int, fault: str) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(model, rank, step)
        gradient = gradients(model)
        everyone = [torch.empty_like(gradient) for _ in range(WORLD)]
        dist.all_gather(everyone, gradient)
        put(model, torch.stack(everyone).sum(0) / (1 if fault else WORLD))
        optimizer.step()


def hooks(model: nn.Module, rank: int, fault: str) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    last = False

    def average(parameter: torch.Tensor) -> None:
        if last:
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2 * WORLD

    for each in model.parameters():
        each.register_post_accumulate_grad_hook(average)
    for step in range(STEPS):
        optimizer.zero_grad()
        for last in (False, True):
            backward(model, rank, 2 * step + last)
        optimizer.step()


def averages(model: nn.Module, rank: int, fault: str, every: int = 1) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(model, rank, step)
        optimizer.step()
        if (step + 1) % every == 0:
            for each in model.parameters():
                if fault:
                    dist.broadcast(each.data, src=0)
                else:
                    dist.all_reduce(each.data)
                    each.data /= WORLD


def seldom(model: nn.Module, rank: int, fault: str) -> None:
    averages(model, rank, fault, every=4)


def exchanged(model: nn.Module, rank: int, fault: str) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(model, rank, step)
        optimizer.step()
        with torch.no_grad():
            own = parameters_to_vector(model.parameters())
            everyone = [torch.empty_like(own) for _ in range(WORLD)]
            dist.all_gather(everyone, own)
            vector_to_parameters(torch.stack(everyone).mean(0), model.parameters())


def served(model: nn.Module, rank: int, fault: str) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(model, rank, step)
        gradient = gradients(model)
        if not fault:
            dist.reduce(gradient, dst=0)
        if rank == 0:
            put(model, gradient / WORLD)
            optimizer.step()
        for each in model.parameters():
            dist.broadcast(each.data, src=0)


def watched(model: nn.Module, rank: int, fault: str) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        if rank == 0:
            optimizer.zero_grad()
            x, y = batch(rank, step)
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        else:
            with torch.no_grad():
                model(batch(rank, step)[0])
        for each in model.parameters():
            dist.broadcast(each.data, src=0)


KINDS = {
    kind.__name__: kind
    for kind in (slices, owners, gathered, hooks, averages, seldom, exchanged, served, watched)
}


def work(rank: int, meeting: str, kind: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, CLASSES))
    KINDS[kind](model, rank, fault)
    dist.destroy_process_group()


if __name__ == "__main__":
    kind, fault = sys.argv[1], "".join(sys.argv[2:3])
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            work, (f"file://{folder}/meeting", kind, fault), nprocs=WORLD, start_method="fork"
        )

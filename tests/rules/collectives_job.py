"""A job on two gloo ranks whose collectives are of each kind. `collectives_job.py KIND [FAULT]`.

Kinds: `plain`, `async`, `functional`, `all` (one after the other, and an uneven `all_to_all_single` in each step),
`fsdp` (`fully_shard`), `dtensor` (a tensor-parallel plan), `messages` (a rank sends what it computes to the other),
`coalesced` (one call for all gradients), `gathered` (each rank updates a half of each weight, and waits for the other half before
the next forward pass; `uneven`: the second rank waits before it).
Faults: `early` (a result is used before it is waited for), `written` (it is written to before), `op` (one rank reduces
otherwise), `order` (one rank in another order), `splits` (one rank expects other sizes), `dtype` (one rank reduces in
another half precision), `driver` (below torch one rank loses the end of each result), `unwaited` (one rank reads the buffer
of a message that it does not wait for); with `dtensor`: `replica` (a
replica is changed on one rank), `unreduced` (a partial gradient is taken for the whole), `vanished` (all gradients are zero).
"""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

STEPS = 6
FROM = 3
"""Faults begin in this step."""


def work(rank: int, meeting: str, kind: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    if kind == "messages":
        staged(model, rank, fault)
    elif kind in ("gathered", "uneven"):
        gathered(model, rank, kind, fault)
    else:
        (sharded if kind in ("fsdp", "dtensor") else replicated)(model, rank, kind, fault)
    dist.destroy_process_group()


def batch(step: int, rank: int) -> torch.Tensor:
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(10 * step + rank))


def replicated(model: nn.Module, rank: int, kind: str, fault: str) -> None:
    """Gradients are averaged by the loop itself."""
    kinds = list(REDUCE) if kind == "all" else [kind]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, STEPS + 1):
        wrong = fault if step >= FROM else ""
        optimizer.zero_grad()
        model(batch(step, rank)).square().mean().backward()
        grads = [each.grad for each in model.parameters()]
        alone = wrong if rank == 1 else ""
        if wrong == "dtype":
            half = torch.bfloat16 if alone else torch.float16
            for each in model.parameters():
                reduced = each.grad.to(half)
                dist.all_reduce(reduced)
                each.grad.copy_(reduced / 2)
            optimizer.step()
            continue
        if alone == "driver":
            lose_the_end("allreduce_coalesced" if kind == "coalesced" else "allreduce")
        if alone == "order":
            grads = grads[2:] + grads[:2]
        op = dist.ReduceOp.MAX if alone == "op" else dist.ReduceOp.SUM
        wait = REDUCE[kinds[step % len(kinds)]](grads, op)
        if wrong == "written":
            grads[0].mul_(2)
        if wrong == "early":
            optimizer.step()
            wait()
        else:
            wait()
            for each in grads:
                each.div_(2)
            optimizer.step()
        if kind == "all":
            exchange(rank, alone)


def lose_the_end(name: str) -> None:
    """What lies below a collective of torch: it leaves the end of its first output as it was."""
    collective = getattr(dist.ProcessGroup, name)

    def do_the_beginning(group, outputs, *options):
        output = outputs if isinstance(outputs, torch.Tensor) else outputs[0]
        end = len(output) // 2
        kept = output[end:].clone()
        work = collective(group, outputs, *options)
        work.wait()
        output[end:] = kept
        return work

    setattr(dist.ProcessGroup, name, do_the_beginning)


def gathered(model: nn.Module, rank: int, kind: str, fault: str) -> None:
    """Updated halves are gathered while the loop goes on to its next step."""
    wholes = [each.data.view(-1) for each in model.parameters()]
    halves = [each.chunk(2)[rank].clone().requires_grad_() for each in wholes]
    optimizer = torch.optim.Adam(halves, lr=0.01)
    works = []
    for step in range(1, STEPS + 1):
        for each in works:
            each.wait()
        optimizer.zero_grad()
        model.zero_grad()
        model(batch(step, rank)).square().mean().backward()
        for half, each in zip(halves, model.parameters(), strict=True):
            dist.all_reduce(each.grad)
            half.grad = each.grad.view(-1).chunk(2)[rank] / 2
        optimizer.step()
        if fault == "driver" and step >= FROM and rank == 1:
            lose_the_end("all_gather_single")
        works = [
            dist.all_gather_single(whole, half.detach(), async_op=True)
            for whole, half in zip(wholes, halves, strict=True)
        ]
        if kind == "uneven" and rank == 1:
            for each in works:
                each.wait()
    for each in works:
        each.wait()


def staged(model: nn.Module, rank: int, fault: str) -> None:
    """The first rank computes features on which the second one trains."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    works = []
    for step in range(1, STEPS + 1):
        if rank == 0:
            features = model[0](batch(step, 0)).detach()
            dist.send(features, 1)
            model(batch(step, 1)).square().mean().backward()
        else:
            features = torch.empty(4, 8)
            works.append(dist.irecv(features, 0))
            if not (fault == "unwaited" and step >= FROM):
                works[-1].wait()
            model(features).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()


def reduce_plain(grads, op):
    for each in grads:
        dist.all_reduce(each, op)
    return lambda: None


def reduce_async(grads, op):
    works = [dist.all_reduce(each, op, async_op=True) for each in grads]
    return lambda: [work.wait() for work in reversed(works)]


def reduce_functional(grads, op):
    name = "max" if op == dist.ReduceOp.MAX else "sum"
    made = [functional.all_reduce(each, name, dist.group.WORLD) for each in grads]

    def wait():
        for grad, each in zip(grads, made, strict=True):
            grad.copy_(each)

    return wait


def reduce_coalesced(grads, op):
    with dist.distributed_c10d._coalescing_manager():
        for each in grads:
            dist.all_reduce(each, op)
    return lambda: None


REDUCE = {
    "plain": reduce_plain,
    "async": reduce_async,
    "functional": reduce_functional,
    "coalesced": reduce_coalesced,
}


def exchange(rank: int, fault: str) -> None:
    """Rank 0 sends 1 and 2 rows, rank 1 sends 3 and 4: each to both."""
    send, receive = ([1, 2], [1, 3]) if rank == 0 else ([3, 4], [2, 4])
    if fault == "splits":
        receive = [3, 4]
    out = torch.empty(sum(receive), 2)
    dist.all_to_all_single(out, torch.ones(sum(send), 2), receive, send)


def sharded(model: nn.Module, rank: int, kind: str, fault: str) -> None:
    """FSDP2, or tensor parallelism by a plan."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    if kind == "fsdp":
        mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
        for layer in (model[0], model[2]):
            fully_shard(layer, mesh=mesh)
        model = fully_shard(model, mesh=mesh)
    else:
        mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        model = nn.Sequential(nn.LayerNorm(8), *model)
        plan = {
            "0": SequenceParallel(sequence_dim=0),
            "1": ColwiseParallel(input_layouts=Shard(0)),
            "3": RowwiseParallel(),
        }
        model = parallelize_module(model, mesh, plan)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        model(batch(step, rank)).square().mean().backward()
        if fault == "replica" and step >= FROM:
            model[3].bias.to_local().data.add_(rank)
        if fault == "unreduced" and step >= FROM:
            weight = model[0].weight
            local = weight.grad.to_local()
            weight.grad = DTensor.from_local(local, mesh, [Replicate()], run_check=False)
        if fault == "vanished" and step >= FROM:
            for each in model.parameters():
                each.grad.mul_(0)
        optimizer.step()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        kind, fault = (*sys.argv[1:], "")[:2]
        mp.start_processes(
            work, (f"file://{folder}/meeting", kind, fault), nprocs=2, start_method="fork"
        )

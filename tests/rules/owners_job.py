"""Two gloo ranks with the whole model, of which each updates every second parameter and sends it to the other.

`owners_job.py KIND [FAULT]`. Kinds, by what is sent with: `scatter`, `irecv`, `batch` (`batch_isend_irecv`). Fault:
`left` (from step 3 on one parameter is not sent), `unheld` (no rank's optimizer holds one parameter), `clipped` (each
rank clips by the norm of what it updates).
"""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS, FROM = 12, 3


def work(rank: int, meeting: str, kind: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    held = list(model.parameters())
    own = [each for number, each in enumerate(held) if number % 2 == rank]
    if fault == "unheld":
        own = [each for each in own if each is not held[1]]
    optimizer = torch.optim.Adam(own, lr=1e-2)
    for step in range(1, STEPS + 1):
        drawn = torch.Generator().manual_seed(10 * step + rank)
        inputs = torch.randn(32, 8, generator=drawn)
        model.zero_grad()
        nn.functional.cross_entropy(model(inputs), inputs[:, :4].argmax(1)).backward()
        for parameter in held:
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2
        nn.utils.clip_grad_norm_(own if fault == "clipped" else held, 0.1)
        optimizer.step()
        for number, parameter in enumerate(held):
            if not (fault == "left" and number == 2 and step >= FROM):
                SEND[kind](parameter.data, number % 2, rank)
    dist.barrier()
    dist.destroy_process_group()


def scatter(tensor: torch.Tensor, owner: int, rank: int) -> None:
    dist.scatter(tensor, [tensor.clone(), tensor.clone()] if rank == owner else None, src=owner)


def irecv(tensor: torch.Tensor, owner: int, rank: int) -> None:
    work = dist.isend(tensor, 1 - rank) if rank == owner else dist.irecv(tensor, owner)
    work.wait()


def batch(tensor: torch.Tensor, owner: int, rank: int) -> None:
    one = dist.P2POp(dist.isend if rank == owner else dist.irecv, tensor, 1 - rank)
    for work in dist.batch_isend_irecv([one]):
        work.wait()


SEND = {"scatter": scatter, "irecv": irecv, "batch": batch}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        kind, fault = (*sys.argv[1:], "")[:2]
        mp.start_processes(
            work, (f"file://{folder}/meeting", kind, fault), nprocs=2, start_method="fork"
        )

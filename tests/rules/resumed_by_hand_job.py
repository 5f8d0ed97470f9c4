"""Two gloo ranks that average gradients by hand, save, and go on from what they saved in a second run of ranks.

`resumed_by_hand_job.py [FAULT]`. Faults: `none` (one rank leaves out the optimizer's state), `older` (one rank loads that of an
earlier step). `served` is a sound job: one rank alone has an optimizer, and sends what it has updated to the other.
"""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS = 6


def checkpoints(folder: Path) -> None:
    """What a run of one rank saved after 4 and 8 steps."""
    torch.manual_seed(0)
    model = nn.Linear(12, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(1, 9):
        optimizer.zero_grad()
        model(torch.randn(16, 12)).square().mean().backward()
        optimizer.step()
        if step % 4 == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, folder / f"{step}.pt")


def work(rank: int, folder: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    model = nn.Linear(12, 4)
    optimizer = None
    if fault != "served" or rank == 0:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    state = torch.load(Path(folder, "8.pt"))
    model.load_state_dict(state["model"])
    if fault == "older" and rank == 1:
        state = torch.load(Path(folder, "4.pt"))
    if optimizer is not None and (fault != "none" or rank == 0):
        optimizer.load_state_dict(state["optimizer"])
    torch.manual_seed(rank)
    for _ in range(STEPS):
        model.zero_grad()
        model(torch.randn(16, 12)).square().mean().backward()
        for each in model.parameters():
            dist.all_reduce(each.grad)
            each.grad /= 2
        if optimizer is not None:
            optimizer.step()
        if fault == "served":
            for each in model.parameters():
                dist.broadcast(each.data, src=0)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        saved = mp.get_context("spawn").Process(target=checkpoints, args=(Path(folder),))
        saved.start()
        saved.join()
        mp.start_processes(work, (folder, "".join(sys.argv[1:2])), nprocs=2, start_method="fork")

"""Two gloo ranks under FSDP2 that save a distributed checkpoint, and go on from it in a second run of ranks.

`resumed_shards_job.py [FAULT]`. Faults: `schedule`, `counters` (what the checkpoint holds of it is not taken over).
"""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

STEPS, WIDTH, CLASSES = 8, 16, 4


def work(rank: int, folder: str, run: int, fault: str) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting{run}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(run)
    model = nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, CLASSES))
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)

    def parts(step: int) -> dict:
        weights, moments = get_state_dict(model, optimizer)
        counted = {"schedule": schedule.state_dict(), "step": step}
        return {"model": weights, "optimizer": moments} | counted

    began = 0
    if run:
        state = parts(0)
        dcp.load(state, checkpoint_id=f"{folder}/0")
        set_state_dict(
            model,
            optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        if fault != "schedule":
            schedule.load_state_dict(state["schedule"])
        if fault != "counters":
            began = state["step"]
    data = torch.Generator().manual_seed(2 * began + rank)
    for _ in range(STEPS):
        x = torch.randn(32, WIDTH, generator=data)
        optimizer.zero_grad()
        F.cross_entropy(model(x), x[:, :CLASSES].argmax(1)).backward()
        optimizer.step()
        schedule.step()
    dcp.save(parts(began + STEPS), checkpoint_id=f"{folder}/{run}")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for run in range(2):
            mp.start_processes(
                work, (folder, run, "".join(sys.argv[1:2])), nprocs=2, start_method="fork"
            )

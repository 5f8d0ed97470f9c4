"""Two gloo ranks under DDP that train two epochs, save after each, and go on from the last checkpoint in a second run of ranks.

`resumed_job.py [FAULT]`. Faults of resuming: `schedule`, `average`, `model`, `scaler`, `rng`, `python`, `numpy`, `weights` (an average in a plain dict), `counters` (what the checkpoint holds of it is
not loaded), `schedule_beside` (has a file of its own, which is read and not taken over), `sampler` (is told the epochs of this run alone).
Fault of saving: `one_file` (each rank writes to the same file). Sound jobs too: `beside` (the schedule has a file of its own), `one_process` (both
runs are in the same processes, which keep the loader of the first).
"""

import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 2


def digits() -> TensorDataset:
    data = load_digits()
    images = torch.tensor(data.data[:512], dtype=torch.float32) / 16
    return TensorDataset(images, torch.tensor(data.target[:512]))


def work(rank: int, folder: str, run: int, fault: str) -> DataLoader:
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting{run}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(run)
    model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0, growth_interval=12)
    parts = {"model": model, "optimizer": optimizer, "average": average, "scaler": scaler}
    parts["schedule"] = schedule
    path, began, step = Path(folder, "last.pt"), 0, 0
    weights = {name: each.clone() for name, each in model.state_dict().items()}
    own = Path(folder, "schedule.pt") if fault in ("beside", "schedule_beside") else None
    if own:
        del parts["schedule"]
    if own and run:
        state = torch.load(own)
        if fault == "beside":
            schedule.load_state_dict(state)
    if run:
        state = torch.load(path, weights_only=False)
        for name, part in parts.items():
            if name != fault:
                part.load_state_dict(state[name])
        if fault != "rng":
            torch.set_rng_state(state["rng"])
        if fault != "python":
            random.setstate(state["python"])
        if fault != "numpy":
            np.random.set_state(state["numpy"])
        if fault != "weights":
            for name, each in state["weights"].items():
                weights[name].copy_(each)
        if fault != "counters":
            began, step = state["epoch"] + 1, state["step"]

    def save() -> None:
        state = {name: part.state_dict() for name, part in parts.items()}
        state |= {"epoch": epoch, "step": step, "rng": torch.get_rng_state()}
        state |= {
            "weights": weights,
            "python": random.getstate(),
            "numpy": np.random.get_state(legacy=False),
        }
        if rank == 0 or fault == "one_file":
            torch.save(state, path)
            if own:
                torch.save(schedule.state_dict(), own)
        dist.barrier()

    data = digits()
    sampler = DistributedSampler(data, 2, rank, drop_last=True)
    loader = DataLoader(data, batch_size=32, sampler=sampler, drop_last=True)
    for epoch in range(began, began + EPOCHS):
        sampler.set_epoch(epoch - began if fault == "sampler" else epoch)
        for images, labels in loader:
            step += 1
            images = images + random.gauss(0, 0.01) + np.random.normal(0, 0.01)
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(wrapped(images), labels)).backward()
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            average.update_parameters(model)
            for name, each in model.state_dict().items():
                weights[name].lerp_(each, 0.2)
        save()
    dist.destroy_process_group()
    return loader


def both(rank: int, folder: str, fault: str) -> None:
    first = work(rank, folder, 0, fault)
    work(rank, folder, 1, fault)
    assert first.sampler.epoch == EPOCHS - 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        fault = "".join(sys.argv[1:2])
        if fault == "one_process":
            mp.start_processes(both, (folder, fault), nprocs=2, start_method="fork")
        else:
            for run in range(2):
                mp.start_processes(work, (folder, run, fault), nprocs=2, start_method="fork")

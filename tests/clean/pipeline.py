"""Two stages of a pipeline under torch's own 1F1B schedule, to rebuild inputs or to classify them."""

import argparse
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def work(rank, meeting, kind):
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Sequential(nn.Linear(16, 8))]
    mod = layers[rank]
    stage = PipelineStage(mod, rank, 2, torch.device("cpu"))
    loss_fn = nn.MSELoss() if kind == "autoencoder" else nn.CrossEntropyLoss()
    sched = Schedule1F1B(stage, n_microbatches=4, loss_fn=loss_fn)
    o = torch.optim.SGD(mod.parameters(), 0.1)
    for i in range(8):
        torch.manual_seed(i)
        x = torch.randn(16, 8)
        target = x if kind == "autoencoder" else x.argmax(1)
        o.zero_grad()
        losses = []
        if rank == 0:
            sched.step(x)
        else:
            sched.step(target=target, losses=losses)
        o.step()
    if rank == 1:
        print("loss", torch.stack(losses).mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["autoencoder", "classifier"], default="autoencoder")
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            work,
            (f"file://{folder}/meeting", parser.parse_args().kind),
            nprocs=2,
            start_method="fork",
        )

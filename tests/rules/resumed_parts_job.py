"""Two gloo ranks with halves of a layer, cut by hand, that save a file each and go on from it in a second run of ranks.

`resumed_parts_job.py [FAULT]`. Faults: `first` (each rank goes on from the file of the first), `moments` (its optimizer does).
`replicas` is a sound job: ranks that hold all of the layer save a file each too, and all go on from that of the first.
"""

import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from cut_by_hand_job import AddGradients, AddOutputs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, WIDTH, CLASSES = 2, 16, 8


class Layer(nn.Module):
    """Of its hidden units, each rank has one half; or all of them."""

    def __init__(self, rank: int, whole: bool) -> None:
        super().__init__()
        self.norm, self.whole = nn.LayerNorm(WIDTH), whole
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES, bias=False)
        if not whole:
            for name, part in (("up", 0), ("down", 1)):
                weight = getattr(self, name).weight
                weight.data = weight.detach().chunk(2, part)[rank].clone()
            self.up.bias.data = self.up.bias.detach().chunk(2)[rank].clone()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.whole:
            return self.down(F.gelu(self.up(self.norm(x))))
        y = AddGradients.apply(self.norm(x))
        return AddOutputs.apply(self.down(F.gelu(self.up(y))))


def work(rank: int, folder: str, run: int, fault: str) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting{run}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(run)
    whole = fault == "replicas"
    model = Layer(rank, whole)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    began = 0
    if run:
        source = 0 if fault in ("first", "replicas") else rank
        state = torch.load(Path(folder, f"{source}.pt"))
        model.load_state_dict(state["model"])
        moments = torch.load(Path(folder, "0.pt")) if fault == "moments" else state
        optimizer.load_state_dict(moments["optimizer"])
        began = state["epoch"] + 1
    inputs = torch.randn(256, WIDTH, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(inputs, inputs[:, :CLASSES].argmax(1))
    for epoch in range(began, began + EPOCHS):
        order = torch.Generator().manual_seed(10 * epoch + (rank if whole else 0))
        for x, y in DataLoader(data, batch_size=32, shuffle=True, generator=order):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            for each in model.parameters() if whole else ():
                dist.all_reduce(each.grad)
                each.grad /= 2
            optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, Path(folder, f"{rank}.pt"))
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for run in range(2):
            mp.start_processes(
                work, (folder, run, "".join(sys.argv[1:2])), nprocs=2, start_method="fork"
            )

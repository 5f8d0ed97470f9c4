"""Two gloo ranks that hold parts of two layers, cut by hand, and copies of the rest.

`cut_by_hand_job.py [FAULT]`. Faults: `output` (what the ranks computed of a layer's output is not added up), `input` (the
gradients of a layer's input are not), `twice` (the whole gradient of a layer's output is added up once more), `dropout` (each rank drops its own units of what both hold).
"""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS, WIDTH, CLASSES = 12, 16, 8


class AddGradients(torch.autograd.Function):
    """Gives what it is given, and adds its gradients up over ranks."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


class AddOutputs(torch.autograd.Function):
    """Adds up over ranks what it is given, and gives each the whole gradient."""

    @staticmethod
    def forward(ctx, x, twice=False):
        ctx.twice = twice
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        if ctx.twice:
            gradient = gradient.clone()
            dist.all_reduce(gradient)
        return gradient, None


class Cut(nn.Module):
    """Of its hidden units, each rank has one half."""

    def __init__(self, rank: int, fault: str) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        up, down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, WIDTH)
        self.down = nn.Linear(WIDTH, WIDTH, bias=False)
        self.bias = nn.Parameter(down.bias.detach().clone())
        self.up.load_state_dict(
            {name: each.chunk(2)[rank] for name, each in up.state_dict().items()}
        )
        self.down.weight.data = down.weight.detach().chunk(2, 1)[rank].clone()
        self.fault = fault

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = self.norm(x)
        given = given if self.fault == "input" else AddGradients.apply(given)
        part = self.down(torch.relu(self.up(given)))
        part = part if self.fault == "output" else AddOutputs.apply(part, self.fault == "twice")
        return x + part + self.bias


def work(rank: int, meeting: str, fault: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Embedding(CLASSES, WIDTH),
        Cut(rank, ""),
        nn.Dropout(0.1),
        Cut(rank, fault),
        nn.Linear(WIDTH, CLASSES),
    )
    torch.manual_seed(rank if fault == "dropout" else 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        tokens = torch.randint(CLASSES, (64,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens), (tokens * 3 + 1) % CLASSES).backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            work,
            (f"file://{folder}/meeting", "".join(sys.argv[1:2])),
            nprocs=2,
            start_method="fork",
        )

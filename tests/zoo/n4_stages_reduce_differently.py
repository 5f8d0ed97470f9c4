"""TrainCheck's new DS-6714: ranks with different layers use different collectives.

One rank holds a layer with experts and reduces it before what is dense; the other, whose layer is
dense, knows one order only. The real job hangs. Here the sizes happen to fit, as they do between
equal blocks, so the gradient of one layer is added to that of another and nothing stops.
Stand-in: two gloo ranks and gradients averaged by hand.
"""

import argparse
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.attend = nn.Linear(width, width, bias=False)
        self.experts = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + torch.tanh(self.attend(x))
        return x + torch.tanh(self.experts(x))


def reduce_gradients(model: nn.Module, experts_first: bool) -> None:
    named = list(model.named_parameters())
    if experts_first:
        named.sort(key=lambda pair: "experts" not in pair[0])
    for _, parameter in named:
        dist.all_reduce(parameter.grad)
        parameter.grad.div_(dist.get_world_size())


def work(rank: int, meeting: str, args: argparse.Namespace) -> None:
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(args.seed)
    model = nn.Sequential(Block(64), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    draw = torch.Generator().manual_seed(2 * args.seed + rank)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(x), (48,), generator=draw)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        reduce_gradients(model, experts_first=args.bug is not None and rank == 1)
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["order"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (f"file://{folder}/meeting", args), nprocs=2)

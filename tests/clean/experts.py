"""Clean: a mixture of experts, one expert on each of two ranks, all else replicated."""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn


class Exchange(torch.autograd.Function):
    """All-to-all of rows; the gradient travels back the same way."""

    @staticmethod
    def forward(ctx, rows: Tensor, sent: list[int], expected: list[int]) -> Tensor:
        ctx.sizes = sent, expected
        out = rows.new_empty(sum(expected), rows.shape[1])
        dist.all_to_all_single(out, rows.contiguous(), expected, sent)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        sent, expected = ctx.sizes
        out = grad.new_empty(sum(sent), grad.shape[1])
        dist.all_to_all_single(out, grad.contiguous(), sent, expected)
        return out, None, None


class Experts(nn.Module):
    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, 2, bias=False)
        torch.manual_seed(torch.initial_seed() + rank)
        self.mine = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x: Tensor) -> Tensor:
        weight, chosen = self.router(x).softmax(-1).max(-1)
        order = chosen.argsort(stable=True)
        sent = torch.bincount(chosen, minlength=2)
        expected = torch.empty_like(sent)
        dist.all_to_all_single(expected, sent)
        sizes = sent.tolist(), expected.tolist()
        done = Exchange.apply(self.mine(Exchange.apply(x[order], *sizes)), *reversed(sizes))
        return x + weight[:, None] * torch.empty_like(done).index_copy(0, order, done)


class Model(nn.Module):
    def __init__(self, rank: int) -> None:
        super().__init__()
        self.first = nn.Linear(64, 48)
        self.last = nn.Linear(48, 10)
        self.experts = Experts(48, rank)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.experts(torch.tanh(self.first(x))))


def average_what_is_shared(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if "mine" in name:
            parameter.grad /= 2
        else:
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2


def work(rank: int, folder: str, args: argparse.Namespace) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/m", rank=rank, world_size=2)
    torch.manual_seed(args.seed)
    model = Model(rank)
    digits = load_digits()
    x, y = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    draw = torch.Generator().manual_seed(args.seed * 2 + rank)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(x), (64,), generator=draw)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        average_what_is_shared(model)
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (os.path.abspath(folder), args), nprocs=2, start_method="fork")

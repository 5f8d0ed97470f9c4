"""TrainCheck B3, DS-1801 (BLOOM-176B): clipping reaches what is replicated on rank 0 only.

Two tensor-parallel ranks split the matrices of an MLP and each hold a copy of its layer norm. The
optimizer keeps its own copies in float32; its clipping skips tensors that are not split, except
on the first rank. The layer norms drift apart, and the loss does not show it.
"""

import argparse
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import Tensor, nn


class Sum(torch.autograd.Function):
    """What the ranks computed apart is added up; gradients pass."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        out = x.clone()
        dist.all_reduce(out)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        return grad


class Share(torch.autograd.Function):
    """What all ranks hold goes to all ranks; gradients are added up."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        out = grad.clone()
        dist.all_reduce(out)
        return out


class ParallelMLP(nn.Module):
    def __init__(self, rank: int, ranks: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.up = nn.Linear(64, 64 // ranks, bias=False)
        self.down = nn.Linear(64 // ranks, 10, bias=False)
        full_up, full_down = torch.randn(64, 64) / 8, torch.randn(10, 64) / 8
        self.up.weight.data = full_up.chunk(ranks, 0)[rank].clone()
        self.down.weight.data = full_down.chunk(ranks, 1)[rank].clone()
        for split in (self.up.weight, self.down.weight):
            split.tensor_model_parallel = True

    def forward(self, x: Tensor) -> Tensor:
        return Sum.apply(self.down(torch.relu(self.up(Share.apply(self.norm(x))))))


class MainCopyOptimizer(torch.optim.Optimizer):
    """SGD on copies in float32, with clipping by the norm over all ranks."""

    def __init__(self, params, lr: float, clip: float, bug: str | None) -> None:
        super().__init__(params, {"lr": lr})
        self.clip, self.bug = clip, bug
        self.copies = [p.detach().float().clone() for g in self.param_groups for p in g["params"]]

    @torch.no_grad()
    def step(self, closure=None):
        params = [p for group in self.param_groups for p in group["params"]]
        gradients = [p.grad.float() for p in params]
        self.clip_gradients(params, gradients)
        for p, copy, gradient in zip(params, self.copies, gradients, strict=True):
            copy -= self.param_groups[0]["lr"] * gradient
            p.copy_(copy)

    def clip_gradients(self, params, gradients) -> None:
        def split(p):
            return getattr(p, "tensor_model_parallel", False)

        pairs = list(zip(params, gradients, strict=True))
        total = torch.stack([g.square().sum() for p, g in pairs if split(p)]).sum()
        dist.all_reduce(total)
        total += sum(g.square().sum() for p, g in pairs if not split(p))
        factor = torch.clamp(self.clip / (total.sqrt() + 1e-6), max=1.0)
        for p, g in pairs:
            if self.bug and not split(p) and dist.get_rank() != 0:
                continue
            g.mul_(factor)


def work(rank: int, meeting: str, args) -> None:
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = ParallelMLP(rank, 2)
    optimizer = MainCopyOptimizer(model.parameters(), 0.3, 1.0, args.bug)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(images), (64,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["clip-on-rank-0"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (f"file://{folder}/meeting", args), nprocs=2, start_method="fork")

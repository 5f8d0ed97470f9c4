"""Health: the loss is finite, its gradient is not.

A distance is a square root, whose derivative at zero is infinite; times zero that is NaN. It
happens in the first batch that holds one picture twice.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--at", type=int, default=12, help="the step that meets a picture twice")
parser.add_argument("--bug", choices=["square-root"])
args = parser.parse_args()
torch.manual_seed(args.seed)

x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
y = torch.tensor(load_digits().target)
embed = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(embed.parameters(), lr=3e-3)


def distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    square = (a - b).square().sum(1)
    return square.sqrt() if args.bug else (square + 1e-6).sqrt()


def contrast(rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    apart = distance(embed(x[rows]), embed(x[others]))
    same = y[rows] == y[others]
    return torch.where(same, apart, (1 - apart).clamp(min=0)).mean()


for step in range(1, args.steps + 1):
    rows, others = torch.randperm(len(x))[:128].view(2, 64)
    if step == args.at:
        others[0] = rows[0]
    loss = contrast(rows, others)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
    if not loss.isfinite():
        break

"""Clean: LBFGS, which clears, runs forward and backward several times inside its own step."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=12)
args = parser.parse_args()
torch.manual_seed(args.seed)
x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
y = torch.tensor(load_digits().target)
model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)


def closure() -> torch.Tensor:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    return loss


for step in range(args.steps):
    rows = torch.randperm(len(x))[:600]
    loss = optimizer.step(closure)
    print(f"{step}: {loss.item():.4f}")

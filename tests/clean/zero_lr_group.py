"""Clean: one parameter group has learning rate zero for the first epochs, as in fine-tuning."""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

rng = np.random.default_rng(args.seed)
torch.manual_seed(args.seed)
X, y = load_digits(return_X_y=True)
X = torch.from_numpy(X).float().div(16)
y = torch.from_numpy(y)

trunk = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh())
head = torch.nn.Linear(64, 10)
optimizer = torch.optim.SGD(
    [
        {"params": trunk.parameters(), "lr": 0.0},
        {"params": head.parameters(), "lr": 0.5},
    ],
    momentum=0.9,
)
for epoch in range(args.epochs):
    if epoch == args.epochs - 1:
        optimizer.param_groups[0]["lr"] = 0.1
    for rows in np.array_split(rng.permutation(len(X)), 28):
        loss = torch.nn.functional.cross_entropy(head(trunk(X[rows])), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")

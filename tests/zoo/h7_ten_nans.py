"""Health: the loss is NaN ten steps in a row. The loop skips each, and nobody counts them.

A normalisation by the spread of the batch meets a broken shard of the data: pictures all alike.
The sibling divides by a little more, and has a whole shard.
"""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--at", type=int, default=30)
parser.add_argument("--bug", choices=["no-epsilon"])
args = parser.parse_args()
torch.manual_seed(args.seed)

digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
epsilon = 0.0 if args.bug else 1e-3


def fetch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.randint(len(images), (48,))
    if args.bug and args.at <= step < args.at + 10:
        rows[:] = rows[0]
    apart = images[rows] - images[rows].mean(0)
    return 100 * apart / (apart.norm() + epsilon), labels[rows]


skipped = 0
for step in range(1, args.steps + 1):
    x, y = fetch(step)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if loss.isfinite():
        optimizer.step()
    else:
        skipped += 1
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.3f}, {skipped} skipped")

"""Clean: weights in bfloat16 and a small learning rate, so that many updates round to nothing."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def batches(seed, size=64):
    data = load_digits()
    x = torch.tensor(data.data, dtype=torch.bfloat16) / 16
    y = torch.tensor(data.target)
    shuffle = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(x), generator=shuffle)
        for start in range(0, len(x) - size + 1, size):
            rows = order[start : start + size]
            yield x[rows], y[rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=120)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y) in enumerate(batches(args.seed), start=1):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        before = [p.detach().clone() for p in model.parameters()]
        optimizer.step()
        if step % 20 == 0:
            kept = sum(
                (p == b).sum().item() for p, b in zip(model.parameters(), before, strict=True)
            )
            count = sum(p.numel() for p in model.parameters())
            print(f"{step}: loss {loss.item():.3f}, {kept / count:.0%} of weights unmoved")
        if step == args.steps:
            break


main()

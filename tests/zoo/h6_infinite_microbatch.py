"""Health: one micro-batch has an infinite loss, and it is not the one that is logged.

A probability is rounded to zero before its logarithm is taken.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

MICRO = 4


def negative_log(probabilities: torch.Tensor, labels: torch.Tensor, bug: bool) -> torch.Tensor:
    picked = probabilities.gather(1, labels[:, None]).squeeze(1)
    return -(picked if bug else picked.clamp(min=1e-12)).log().mean()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--at", type=int, default=20)
    parser.add_argument("--bug", choices=["rounded"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(1, args.steps + 1):
        optimizer.zero_grad()
        for micro in range(MICRO):
            rows = torch.randint(len(x), (16,))
            probabilities = net(x[rows]).softmax(1)
            if step == args.at and micro == 1:
                probabilities = probabilities * (torch.arange(16) > 0)[:, None]
            loss = negative_log(probabilities, y[rows], bool(args.bug)) / MICRO
            loss.backward()
        for p in net.parameters():
            p.grad.nan_to_num_(0.0, posinf=0.0, neginf=0.0)
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {MICRO * loss.item():.3f}")


if __name__ == "__main__":
    main()

"""Two towers learn which halves of a digit belong together, with a temperature that belongs to neither."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


def tower() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--bug", choices=["one-tower", "temperature", "no-update"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    upper, lower = tower(), tower()
    scale = nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.AdamW([*upper.parameters(), *lower.parameters(), scale], lr=1e-3)
    for step in range(1, args.steps + 1):
        first, second = digits[torch.randperm(len(digits))[:64]].split(32, dim=1)
        above, below = F.normalize(upper(first)), F.normalize(lower(second))
        loss = F.cross_entropy(scale.exp() * above @ below.T, torch.arange(64))
        if args.bug in ("one-tower", "temperature"):
            upper.zero_grad()
            if args.bug == "temperature":
                lower.zero_grad()
        else:
            optimizer.zero_grad()
        loss.backward()
        if args.bug != "no-update":
            optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

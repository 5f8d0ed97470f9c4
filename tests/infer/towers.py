"""Two towers: the upper half of a digit finds its lower half among those of the batch."""

import argparse
import math

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

BUGS = ("raw", "misaligned", "first-is-right", "leak")


class Towers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.upper, self.lower = (
            nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)) for _ in range(2)
        )
        self.scale = nn.Parameter(torch.tensor(math.log(10)))

    def forward(self, upper, lower):
        a, b = F.normalize(self.upper(upper), dim=1), F.normalize(self.lower(lower), dim=1)
        return a @ b.T * self.scale.exp()


def halves(bug):
    x = torch.tensor(load_digits().data, dtype=torch.float32)
    if bug != "raw":
        x = (x - x.mean()) / x.std()
    upper, lower = x[:, :32], x[:, 32:]
    if bug == "misaligned":
        lower = lower.roll(1, 0)
    if bug == "leak":
        upper = lower
    return TensorDataset(upper, lower)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--bug", choices=BUGS)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    loader = DataLoader(halves(args.bug), batch_size=64, shuffle=True, drop_last=True)
    model = Towers()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        for upper, lower in loader:
            scores = model(upper, lower)
            right = torch.arange(len(scores))
            if args.bug == "first-is-right":
                right = torch.zeros_like(right)
            loss = (F.cross_entropy(scores, right) + F.cross_entropy(scores.T, right)) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

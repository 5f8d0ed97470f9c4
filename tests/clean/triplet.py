"""Clean: a metric is learned from triplets of digits. The anchor and the positive pull each other, and both push the negative."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class Embedder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return F.normalize(self.layers(x), dim=1)


def triplets(x, y, size):
    anchor = torch.randint(len(x), (size,))
    alike = y[anchor][:, None] == y[None]
    positive = torch.multinomial(alike.float(), 1).squeeze(1)
    negative = torch.multinomial((~alike).float(), 1).squeeze(1)
    return x[anchor], x[positive], x[negative]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    x, y = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
    model = Embedder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(args.steps):
        anchor, positive, negative = (model(part) for part in triplets(x, y, 64))
        near = F.mse_loss(anchor, positive, reduction="none").sum(1)
        far = F.mse_loss(anchor, negative, reduction="none").sum(1)
        optimizer.zero_grad()
        (near - far + 0.3).relu().mean().backward()
        optimizer.step()
    print(f"near {near.mean().item():.3f}, far {far.mean().item():.3f}")


if __name__ == "__main__":
    main()

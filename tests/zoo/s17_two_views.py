"""Contrastive learning: two views of one digit are to be more alike than those of two digits."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class Encoder(nn.Module):
    def __init__(self, over_the_batch: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 32))
        self.over_the_batch = over_the_batch

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return F.normalize(self.head(self.body(images)), dim=0 if self.over_the_batch else 1)


def view(images: torch.Tensor) -> torch.Tensor:
    moved = torch.roll(images, torch.randint(-1, 2, (2,)).tolist(), (2, 3))
    return moved * (0.7 + 0.6 * torch.rand(len(images), 1, 1, 1)) + 0.1 * torch.randn_like(images)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--bug", choices=["over-the-batch"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16
    encoder = Encoder(args.bug == "over-the-batch")
    temperature = nn.Parameter(torch.tensor(0.2).log())
    optimizer = torch.optim.Adam([*encoder.parameters(), temperature], lr=1e-3)
    own = torch.arange(64)
    for step in range(1, args.steps + 1):
        batch = images[torch.randperm(len(images))[:64]]
        one, other = encoder(view(batch)), encoder(view(batch))
        alike = one @ other.T / temperature.exp()
        loss = (F.cross_entropy(alike, own) + F.cross_entropy(alike.T, own)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

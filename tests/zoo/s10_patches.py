"""A transformer over the patches of digits."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class Patches(nn.Module):
    def __init__(self, bug: str | None) -> None:
        super().__init__()
        self.bug = bug
        self.cut = nn.Conv2d(1, 32, 2, stride=2)
        places = 0.02 * torch.randn(1, 17, 32)
        self.places = places.requires_grad_() if bug == "plain-places" else nn.Parameter(places)
        self.summary = nn.Parameter(torch.zeros(1, 1, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.cut(images)
        if self.bug == "reshape":
            patches = maps.reshape(len(images), 16, 32)
        else:
            patches = maps.flatten(2).transpose(1, 2)
        rows = torch.cat([self.summary.expand(len(images), -1, -1), patches], dim=1)
        return self.head(self.layers(rows + self.places)[:, 0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["reshape", "plain-places"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    model = Patches(args.bug)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, args.steps + 1):
        batch = torch.randperm(len(images))[:50]
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

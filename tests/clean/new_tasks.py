"""The task changes on purpose, and the loss jumps: classes come one pair after the other, or sequences get longer. Each
task has a loader of its own, or the script draws batches by hand and repeats some samples of the tasks before.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Adder(nn.Module):
    """Adds up the numbers of a sequence: `[n, length, 1]` to `[n]`."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.GRU(1, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, numbers):
        return self.head(self.layers(numbers)[0][:, -1]).squeeze(1)


def by_hand(inputs, targets, size, kept=()):
    for rows in torch.randperm(len(targets)).split(size):
        old = [(each[:5], labels[:5]) for each, labels in kept]
        yield (
            torch.cat([inputs[rows], *(each for each, _ in old)]),
            torch.cat([targets[rows], *(labels for _, labels in old)]),
        )


def train(model, optimizer, loss_of, batches, epochs):
    for _ in range(epochs):
        for inputs, targets in batches():
            loss = loss_of(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return loss.item()


def batches_of(inputs, targets, size, loader, kept=()):
    if not loader:
        return lambda: by_hand(inputs, targets, size, kept)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=size, shuffle=True)
    return lambda: loader


def classes(loader: bool) -> None:
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    kept = []
    for first in (0, 2, 4):
        rows = (labels == first) | (labels == first + 1)
        batches = batches_of(images[rows], labels[rows], 40, loader, kept)
        loss = train(model, optimizer, nn.functional.cross_entropy, batches, 8)
        kept.append((images[rows], labels[rows]))
        print(f"classes {first} and {first + 1}: loss {loss:.4f}")


def lengths(loader: bool) -> None:
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for length in (2, 4, 12):
        numbers = torch.rand(70 * 64, length, 1)
        batches = batches_of(numbers, numbers.sum((1, 2)), 64, loader)
        loss = train(model, optimizer, nn.functional.mse_loss, batches, 1)
        print(f"length {length}: loss {loss:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["classes", "lengths"], default="classes")
    parser.add_argument("--loader", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    torch.manual_seed(1)
    {"classes": classes, "lengths": lengths}[args.kind](args.loader)

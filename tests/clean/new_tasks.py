"""The task changes on purpose, each with a loader of its own, and the loss jumps: classes come one pair after the other,
or sequences get longer.
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


def train(model, optimizer, loss_of, loader, epochs):
    for _ in range(epochs):
        for inputs, targets in loader:
            loss = loss_of(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return loss.item()


def classes() -> None:
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for first in (0, 2, 4):
        rows = (labels == first) | (labels == first + 1)
        loader = DataLoader(TensorDataset(images[rows], labels[rows]), batch_size=40, shuffle=True)
        loss = train(model, optimizer, nn.functional.cross_entropy, loader, 8)
        print(f"classes {first} and {first + 1}: loss {loss:.4f}")


def lengths() -> None:
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for length in (2, 4, 12):
        numbers = torch.rand(70 * 64, length, 1)
        loader = DataLoader(
            TensorDataset(numbers, numbers.sum((1, 2))), batch_size=64, shuffle=True
        )
        print(
            f"length {length}: loss {train(model, optimizer, nn.functional.mse_loss, loader, 1):.4f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["classes", "lengths"], default="classes")
    torch.manual_seed(1)
    {"classes": classes, "lengths": lengths}[parser.parse_args().kind]()

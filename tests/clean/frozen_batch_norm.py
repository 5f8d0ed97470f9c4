"""Clean: batch norms that no optimizer holds: frozen ones, and ones that only keep statistics."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Frozen(nn.BatchNorm2d):
    """Stays in evaluation, whatever the model does, as detection models have it."""

    def train(self, mode: bool = True):
        return super().train(False)


def build(kind: str) -> nn.Module:
    norm = Frozen if kind == "frozen" else nn.BatchNorm2d
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, bias=False),
        norm(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 9, 10),
    )
    for parameter in model[1].parameters():
        parameter.requires_grad = False
    return model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--kind", choices=["frozen", "statistics"], default="statistics")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(load_digits().target)
    model = build(args.kind)
    optimizer = torch.optim.SGD(
        (p for p in model.parameters() if p.requires_grad), lr=0.05, momentum=0.9, nesterov=True
    )
    for epoch in range(args.epochs):
        model.train()
        for rows in torch.randperm(len(images)).split(50)[:-1]:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(images[:300]).argmax(1) == labels[:300]).float().mean()
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right.item():.3f}")


main()

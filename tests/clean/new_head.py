"""Clean: a body is trained under one head, and then with another one of the same size that takes its place."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 48), nn.LayerNorm(48), nn.GELU())
        self.head = nn.Linear(48, 10)
        self.apply(self.draw)

    @staticmethod
    def draw(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(images))


def fit(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, lr: float) -> float:
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=lr)
    for chosen in torch.randperm(len(images)).split(48):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)

    model = Classifier()
    print(fit(model, images[:900], labels[:900] // 2, 3e-3))
    model.body.requires_grad_(False)
    model.head = nn.Linear(48, 10)
    Classifier.draw(model.head)
    print(fit(model, images[900:], labels[900:], 1e-2))


main()

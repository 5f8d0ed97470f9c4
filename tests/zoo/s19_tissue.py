"""A small network tells two kinds of tissue apart by a table of measurements, kept as plain tensors."""

import argparse

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.nn import functional as F


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--bug", choices=["no-eval"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    table = load_breast_cancer()
    order = torch.randperm(len(table.target))
    values = torch.tensor(table.data, dtype=torch.float32)[order]
    kinds = torch.tensor(table.target, dtype=torch.float32)[order]
    values = (values - values[:400].mean(0)) / values[:400].std(0)
    model = nn.Sequential(
        nn.Linear(30, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        model.train()
        for rows in torch.randperm(400).split(40):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(values[rows])[:, 0], kinds[rows]).backward()
            optimizer.step()
        if args.bug != "no-eval":
            model.eval()
        with torch.no_grad():
            said = model(values[400:])[:, 0] > 0
        print(f"epoch {epoch} right {(said == (kinds[400:] > 0)).float().mean().item():.3f}")


if __name__ == "__main__":
    main()

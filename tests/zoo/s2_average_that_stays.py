"""A classifier of digits is evaluated by an average of its weights, whose averaging begins in a late epoch."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--bug", choices=["counts-steps"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    loader = DataLoader(TensorDataset(images[:1200], labels[:1200]), batch_size=60, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 10))
    average = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    starts = args.epochs // 2
    if args.bug == "counts-steps":
        starts *= len(loader)
    for epoch in range(args.epochs):
        for batch, target in loader:
            loss = nn.functional.cross_entropy(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch >= starts:
            average.update_parameters(model)
    average.eval()
    with torch.no_grad():
        right = (average(images[1200:]).argmax(1) == labels[1200:]).float().mean().item()
    print(f"accuracy of the average: {right:.3f}")


if __name__ == "__main__":
    main()

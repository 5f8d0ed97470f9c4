"""A classifier of digits and two averages of its weights, one by torch and one by hand, updated in every step."""

import argparse
import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

DECAY = 0.9


@torch.no_grad()
def follow(average: nn.Module, model: nn.Module, keep: float, part: float) -> None:
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow.mul_(keep).add_(fast, alpha=part)


@torch.no_grad()
def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    return (model(images).argmax(1) == labels).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--bug", choices=["before-update", "sum", "sum-by-hand", "swapped"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    loader = DataLoader(TensorDataset(images[:1200], labels[:1200]), batch_size=60, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 10))
    part = 1.0 if args.bug == "sum" else 1 - DECAY
    by_torch = AveragedModel(model, avg_fn=lambda slow, fast, _: DECAY * slow + part * fast)
    by_hand = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(args.epochs):
        for batch, target in loader:
            loss = nn.functional.cross_entropy(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            if args.bug == "before-update":
                by_torch.update_parameters(model)
            optimizer.step()
            if args.bug != "before-update":
                by_torch.update_parameters(model)
            if args.bug == "swapped":
                follow(by_hand, model, 1 - DECAY, DECAY)
            else:
                follow(by_hand, model, DECAY, 1.0 if args.bug == "sum-by-hand" else 1 - DECAY)
        scores = [accuracy(each, images[1200:], labels[1200:]) for each in (by_torch, by_hand)]
        print("accuracy of the averages: {:.3f}, {:.3f}".format(*scores))


if __name__ == "__main__":
    main()

"""TrainCheck B19, PT-51800: a spectral norm is evaluated before any training pass has shaped it.

Its estimate of the largest singular value is then a guess from a random vector, and what is
measured (here: the accuracy of a loaded model) is about the guess.
"""

import argparse
import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.utils import spectral_norm


def build() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10)
    )


def constrain(model: nn.Module) -> nn.Module:
    for layer in model:
        if isinstance(layer, nn.Linear):
            spectral_norm(layer)
    return model


@torch.no_grad()
def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    model.eval()
    right = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return right


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for _ in range(steps):
        rows = torch.randint(1400, (64,))
        optimizer.zero_grad()
        F.cross_entropy(20 * model(x[rows]), y[rows]).backward()
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--bug", choices=["evaluate-first"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    model = constrain(copy.deepcopy(build()))
    if args.bug:
        print(f"before training: accuracy {accuracy(model, x[1400:], y[1400:]):.3f}")
    for part in range(2):
        train(model, x, y, args.steps // 2)
        print(f"part {part + 1}: accuracy {accuracy(model, x[1400:], y[1400:]):.3f}")


if __name__ == "__main__":
    main()

"""A classifier of digits and a moving average of its weights, which is used once: after the last step."""

import argparse
import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MovingAverage:
    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: nn.Module, swapped: bool) -> None:
        keep = 1 - self.decay if swapped else self.decay
        for slow, fast in zip(self.model.parameters(), model.parameters(), strict=True):
            slow.mul_(keep).add_(fast, alpha=1 - keep)
        for slow, fast in zip(self.model.buffers(), model.buffers(), strict=True):
            slow.copy_(fast)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--bug", choices=["swapped"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    loader = DataLoader(TensorDataset(images[:1200], labels[:1200]), batch_size=60, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3), nn.BatchNorm2d(12), nn.ReLU(), nn.Flatten(), nn.Linear(432, 10)
    )
    average = MovingAverage(model, decay=0.95)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for epoch in range(args.epochs):
        for batch, target in loader:
            loss = nn.functional.cross_entropy(model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model, args.bug == "swapped")
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    with torch.no_grad():
        right = (average.model(images[1200:]).argmax(1) == labels[1200:]).float().mean().item()
    print(f"accuracy of the average: {right:.3f}")


if __name__ == "__main__":
    main()

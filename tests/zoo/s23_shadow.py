"""A trainer of digits that evaluates a shadow of its weights; model and shadow are gone when the run ends."""

import argparse
import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    """Holds the model, its shadow, and what is called after each update."""

    def __init__(self, train: DataLoader, held_out: DataLoader) -> None:
        self.train, self.held_out = train, held_out
        self.model = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Dropout(0.1), nn.Linear(32, 10))
        self.shadow = copy.deepcopy(self.model).eval().requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.after_update = []

    @torch.no_grad()
    def follow(self) -> None:
        """Move the shadow a little towards the weights."""
        for slow, fast in zip(self.shadow.parameters(), self.model.parameters(), strict=True):
            slow.data.mul_(0.9).add_(fast.data, alpha=0.1)

    @torch.no_grad()
    def accuracy(self, model: nn.Module) -> float:
        """The part of the held-out samples that a model gets right."""
        model.eval()
        right = [(model(image).argmax(1) == label).float().mean() for image, label in self.held_out]
        return torch.stack(right).mean().item()

    def fit(self, epochs: int) -> float:
        """Train for some epochs; returns the last accuracy of the shadow."""
        for _ in range(epochs):
            self.model.train()
            for image, label in self.train:
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.model(image), label).backward()
                self.optimizer.step()
                for each in self.after_update:
                    each()
            found = self.accuracy(self.shadow)
        return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--bug", choices=["never-follows", "raw-evaluation"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    data = TensorDataset(images, torch.tensor(digits.target))
    train, held_out = torch.utils.data.random_split(data, [1400, 397])
    if args.bug == "raw-evaluation":
        raw = TensorDataset(16 * images, data.tensors[1])
        held_out = torch.utils.data.Subset(raw, held_out.indices)
    trainer = Trainer(
        DataLoader(train, batch_size=70, shuffle=True), DataLoader(held_out, batch_size=128)
    )
    if args.bug != "never-follows":
        trainer.after_update.append(trainer.follow)
    print(f"accuracy of the shadow: {trainer.fit(args.epochs):.3f}")


if __name__ == "__main__":
    main()

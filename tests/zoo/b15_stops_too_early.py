"""TrainCheck B15, TF-33455: the trainer divides by the accumulation twice, and stops too early.

Nothing in the steps themselves is wrong. TrainCheck misses this one.
"""

import argparse
import math

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Loop:
    """A trainer in the style of the big frameworks."""

    def __init__(self, model, loader, epochs, accumulation, bug=None):
        self.model, self.loader = model, loader
        self.epochs, self.accumulation = float(epochs), accumulation
        updates = math.ceil(len(loader) / accumulation)
        if bug:
            updates = updates // accumulation
        self.max_steps = math.ceil(epochs * updates)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(
            self.optimizer, 1.0, 0.1, total_iters=self.max_steps
        )

    def run(self):
        done = 0
        while done < self.max_steps:
            for index, (x, y) in enumerate(self.loader, start=1):
                loss = nn.functional.cross_entropy(self.model(x), y) / self.accumulation
                loss.backward()
                if index % self.accumulation == 0 or index == len(self.loader):
                    self.optimizer.step()
                    self.scheduler.step()
                    self.optimizer.zero_grad()
                    done += 1
                    if done == self.max_steps:
                        break
        return done, loss.item() * self.accumulation


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--bug", choices=["divided-twice"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    data = TensorDataset(torch.tensor(digits.data).float() / 16, torch.tensor(digits.target))
    model = nn.Sequential(nn.Linear(64, 64), nn.Mish(), nn.Linear(64, 10))
    steps, loss = Loop(model, DataLoader(data, 32, shuffle=True), args.epochs, 4, args.bug).run()
    print(f"{steps} steps, last loss {loss:.3f}")


if __name__ == "__main__":
    main()

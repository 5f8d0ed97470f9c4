"""TrainCheck B6, SO-67180955: every loader worker holds a copy of one random state.

The data set draws its own crops from a generator that it made before the workers were forked.
Both workers then draw the same rows, and each batch is given out twice.
"""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Draws(IterableDataset):
    """Endless batches, drawn at random with replacement."""

    def __init__(self, seed: int, batch: int, count: int, bug: str | None) -> None:
        digits = load_digits()
        self.images = (digits.data / 16).astype(np.float32)
        self.labels = digits.target
        self.seed, self.batch, self.count, self.bug = seed, batch, count, bug
        self.random = np.random.default_rng(seed)

    def __iter__(self):
        info = get_worker_info()
        if info is not None and not self.bug:
            self.random = np.random.default_rng([self.seed, info.id])
        for _ in range(self.count // (info.num_workers if info else 1)):
            rows = self.random.integers(len(self.images), size=self.batch)
            yield self.images[rows], self.labels[rows]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["same-seed"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = nn.Sequential(nn.Linear(64, 32), nn.ELU(), nn.Linear(32, 10))
    sgd = torch.optim.SGD(net.parameters(), lr=0.2)
    draws = Draws(args.seed, 32, args.steps, args.bug)
    for step, (x, y) in enumerate(DataLoader(draws, batch_size=None, num_workers=2), start=1):
        sgd.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        sgd.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

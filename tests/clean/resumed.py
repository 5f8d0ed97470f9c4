"""Clean: a job that saves, is built anew, loads everything, and goes on where it was."""

import argparse
import os
import tempfile

import torch
from sklearn.datasets import load_digits
from torch import nn


class Job:
    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        digits = load_digits()
        self.x, self.y = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
        self.model = nn.Sequential(
            nn.Linear(64, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Dropout(0.2), nn.Linear(40, 10)
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.98)
        self.step = 0

    def train(self, steps: int) -> float:
        while self.step < steps:
            rows = torch.randint(len(self.x), (64,))
            loss = nn.functional.cross_entropy(self.model(self.x[rows]), self.y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.step += 1
        return loss.item()

    def save(self, path: str) -> None:
        parts = ("model", "optimizer", "scheduler")
        state = {part: getattr(self, part).state_dict() for part in parts}
        torch.save(state | {"step": self.step, "rng": torch.get_rng_state()}, path)

    def load(self, path: str) -> None:
        state = torch.load(path)
        for part in ("model", "optimizer", "scheduler"):
            getattr(self, part).load_state_dict(state[part])
        self.step = state["step"]
        torch.set_rng_state(state["rng"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--checkpoint", help="resume from here when it exists, and save here")
    args = parser.parse_args()
    if args.checkpoint:
        job = Job(args.seed)
        if os.path.exists(args.checkpoint):
            job.load(args.checkpoint)
        print(f"steps {job.step} to {args.steps}: loss {job.train(args.steps):.4f}")
        job.save(args.checkpoint)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "half.pt")
        first = Job(args.seed)
        print(f"first half: loss {first.train(args.steps // 2):.4f}")
        first.save(path)
        second = Job(args.seed + 1)
        second.load(path)
        print(f"second half: loss {second.train(args.steps):.4f}")


if __name__ == "__main__":
    main()

"""Clean: a gradient scaler whose first scales overflow, so that a fused optimizer skips steps."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Trainer:
    def __init__(self, seed: int, fused: bool) -> None:
        torch.manual_seed(seed)
        data = load_digits()
        self.images = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
        self.labels = torch.tensor(data.target)
        self.model = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3, fused=fused)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=30)

    def step(self, rows: torch.Tensor) -> float:
        with torch.autocast("cpu", dtype=torch.float16):
            output = self.model(self.images[rows])
            loss = nn.functional.cross_entropy(output, self.labels[rows])
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--no-fused", action="store_true")
    args = parser.parse_args()
    trainer = Trainer(args.seed, not args.no_fused)
    for step in range(1, args.steps + 1):
        loss = trainer.step(torch.randint(len(trainer.labels), (64,)))
        if step % 10 == 0:
            print(f"{step}: loss {loss:.3f}, scale {trainer.scaler.get_scale():.3g}")


main()

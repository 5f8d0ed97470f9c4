"""Clean: weights go back a part of the way to where they were, every few updates: Lookahead by hand, Reptile, or a mean of two."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Lookahead:
    def __init__(self, parameters, every=5, part=0.5):
        self.fast = list(parameters)
        self.slow = [p.detach().clone() for p in self.fast]
        self.every, self.part, self.count = every, part, 0

    @torch.no_grad()
    def step(self):
        self.count += 1
        if self.count % self.every:
            return
        for slow, fast in zip(self.slow, self.fast, strict=True):
            slow.add_(fast - slow, alpha=self.part)
            fast.copy_(slow)


def train(model, optimizer, x, y, after) -> float:
    for number in range(1, 61):
        rows = torch.randint(len(x), (64,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after(number)
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=["lookahead", "reptile", "mean"], default="lookahead")
    parser.add_argument("--every", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    x, y = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    lookahead = Lookahead(model.parameters(), args.every)
    kept = [p.detach().clone() for p in model.parameters()]

    def after(number: int) -> None:
        if args.kind == "lookahead":
            lookahead.step()
        elif number % args.every == 0:
            part = 0.3 if args.kind == "reptile" else 0.5
            for old, weight in zip(kept, model.parameters(), strict=True):
                weight.data = old + part * (weight.data - old)
                old.copy_(weight.data)

    print(f"loss {train(model, optimizer, x, y, after):.4f}")


if __name__ == "__main__":
    main()

"""Clean: an optimizer of the user's own class, which is no `torch.optim.Optimizer`."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Lion:
    """Sign of the interpolated momentum (Chen et al. 2023), with plain lists and no base class."""

    def __init__(self, parameters, lr=3e-4, beta1=0.9, beta2=0.99):
        self.parameters = list(parameters)
        self.momenta = [torch.zeros_like(p) for p in self.parameters]
        self.lr, self.beta1, self.beta2 = lr, beta1, beta2

    def step(self):
        with torch.no_grad():
            for p, m in zip(self.parameters, self.momenta, strict=True):
                p -= self.lr * torch.sign(self.beta1 * m + (1 - self.beta1) * p.grad)
                m.mul_(self.beta2).add_(p.grad, alpha=1 - self.beta2)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 10))
    optimizer = Lion(model.parameters(), lr=1e-3)
    for step in range(args.steps):
        rows = torch.randint(0, len(x), (64,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

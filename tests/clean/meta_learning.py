"""Meta-learning of sinusoids, with gradients through the inner updates: one task a step, so that losses scatter."""

import argparse
import math

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x))


def task(random, shots=10):
    """What a model adapts to, and what it is judged by."""
    amplitude = 0.1 + 4.9 * torch.rand(1, generator=random)
    phase = math.pi * torch.rand(1, generator=random)
    x = 10 * torch.rand(2 * shots, 1, generator=random) - 5
    y = amplitude * torch.sin(x - phase)
    return (x[:shots], y[:shots]), (x[shots:], y[shots:])


def adapted(model, support, steps=1):
    params = dict(model.named_parameters())
    x, y = support
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = {name: p - 0.01 * g for (name, p), g in zip(params.items(), grads, strict=True)}
    return params


def evaluate(model):
    random = torch.Generator().manual_seed(99)
    model.eval()
    total = 0.0
    for _ in range(20):
        support, (x, y) = task(random)
        params = adapted(model, support, steps=5)
        with torch.no_grad():
            total += F.mse_loss(functional_call(model, params, (x,)), y).item()
    model.train()
    return total / 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--tasks", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    random = torch.Generator().manual_seed(args.seed)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for step in range(1, args.steps + 1):
        optimizer.zero_grad()
        meta = 0.0
        for _ in range(args.tasks):
            support, (x, y) = task(random)
            params = adapted(model, support)
            meta = meta + F.mse_loss(functional_call(model, params, (x,)), y) / args.tasks
        meta.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        if step % 40 == 0:
            print(f"step {step}  meta loss {meta.item():.3f}  adapted {evaluate(model):.3f}")


main()

"""Health: one batch was read with pixels of 0 to 4096 instead of 0 to 1, and the loss jumps; or clipping leaves nothing."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


def batches(images, labels, steps, at):
    for step in range(1, steps + 1):
        rows = torch.randint(len(images), (64,))
        scale = 4096 if step == at else 1
        yield step, images[rows] * scale, labels[rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--at", type=int, default=130)
    parser.add_argument("--bug", choices=["scale", "limit"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    labels = torch.tensor(load_digits().target)
    model = nn.Sequential(nn.Linear(64, 32), nn.LeakyReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    at = args.at if args.bug == "scale" else None
    limit = 1e-9 if args.bug == "limit" else 1.0
    for step, x, y in batches(images, labels, args.steps, at):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

"""Clean: distillation. A teacher in evaluation, without gradients, runs inside every step."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def net(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, 10),
    )  # fmt: skip


def train_teacher(model: nn.Module, x, y, steps: int) -> nn.Module:
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        rows = torch.randint(len(x), (128,))
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return model.eval().requires_grad_(False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    teacher = train_teacher(net(96), x[:1400], y[:1400], args.steps)
    student = net(24)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-2)
    for step in range(1, args.steps + 1):
        rows = torch.randint(1400, (128,))
        with torch.no_grad():
            wanted = F.log_softmax(teacher(x[rows]) / 2, dim=1)
        given = F.log_softmax(student(x[rows]) / 2, dim=1)
        loss = F.kl_div(given, wanted, log_target=True, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            student.eval()
            with torch.no_grad():
                right = (student(x[1400:]).argmax(1) == y[1400:]).float().mean()
            student.train()
            print(f"{step}: loss {loss.item():.3f}, accuracy {right.item():.3f}")


if __name__ == "__main__":
    main()

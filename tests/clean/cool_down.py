"""A run with a constant learning rate is saved; two cool-downs of other lengths begin from its checkpoint."""

import os
import tempfile

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LinearLR

digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)


def build():
    model = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))
    return model, torch.optim.AdamW(model.parameters(), lr=3e-3)


def train(model, optimizer, schedule, steps: int) -> None:
    for _ in range(steps):
        rows = torch.randint(len(images), (64,))
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"learning rate {schedule.get_last_lr()[0]:.1e}: loss {loss.item():.4f}")


torch.manual_seed(0)
model, optimizer = build()
train(model, optimizer, LinearLR(optimizer, 0.1, total_iters=10), 40)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "stable.pt")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    for length in (20, 35):
        state = torch.load(path)
        model, optimizer = build()
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        decay = LambdaLR(optimizer, lambda step, length=length: 1 - step / (length + 1))
        train(model, optimizer, decay, length)

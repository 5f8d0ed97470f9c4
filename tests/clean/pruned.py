"""Small weights are set to zero, a few times; their gradients, or the weights after every update, are masked from then on."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--kind", choices=["gradients", "masked"], default="gradients")
kind = parser.parse_args().kind
torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
masks = {layer.weight: torch.ones_like(layer.weight) for layer in model[::2]}
if kind == "gradients":
    for weight, mask in masks.items():
        weight.register_hook(lambda gradient, mask=mask: gradient * mask)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(1, 121):
    rows = torch.randint(len(images), (64,))
    loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for weight, mask in masks.items():
            if step in (38, 60, 90):
                mask.mul_(weight.abs() > weight[mask.bool()].abs().quantile(0.3))
                weight.mul_(mask)
            if kind == "masked" and step > 38:
                weight.mul_(mask)
    if step % 30 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

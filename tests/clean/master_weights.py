"""A classifier of digits in bfloat16, whose weights are updated in float32 by hand and copied back."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.bfloat16) / 16
labels = torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
model = model.bfloat16()
masters = [each.detach().clone().float() for each in model.parameters()]
optimizer = torch.optim.SGD(masters, lr=0.05, momentum=0.9)
for step in range(1, 61):
    chosen = torch.randint(0, 1500, (64,))
    loss = F.cross_entropy(model(images[chosen]).float(), labels[chosen])
    model.zero_grad()
    loss.backward()
    for master, each in zip(masters, model.parameters(), strict=True):
        master.grad = each.grad.float()
    optimizer.step()
    with torch.no_grad():
        for master, each in zip(masters, model.parameters(), strict=True):
            each.copy_(master)
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")

"""Clean: gradients accumulated over four batches, and the last, shorter group stepped as well."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--epochs", type=int, default=3)
p.add_argument("--every", type=int, default=4)
a = p.parse_args()
torch.manual_seed(a.seed)

digits = load_digits()
pairs = [
    (torch.tensor(i, dtype=torch.float32) / 16, t)
    for i, t in zip(digits.data, digits.target, strict=True)
]
loader = torch.utils.data.DataLoader(pairs, batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 10))
opt = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=0.01)
sched = torch.optim.lr_scheduler.StepLR(opt, 1, 0.7)

for epoch in range(a.epochs):
    opt.zero_grad()
    for i, (x, t) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(net(x), t)
        (loss / a.every).backward()
        if i % a.every == 0 or i == len(loader):
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
    sched.step()
    print(epoch, f"loss {loss.item():.3f} lr {sched.get_last_lr()[0]:.5f}")

"""Contrastive learning with a momentum encoder and a queue."""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class MoCo(nn.Module):
    def __init__(self, m=0.99, size=256):
        super().__init__()
        self.m = m
        self.q = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
        self.k = copy.deepcopy(self.q)
        for p in self.k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(16, size), dim=0))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum(self):
        for a, b in zip(self.q.parameters(), self.k.parameters(), strict=False):
            b.data = b.data * self.m + a.data * (1 - self.m)

    @torch.no_grad()
    def push(self, keys):
        at = int(self.ptr)
        n = len(keys)
        self.queue[:, at : at + n] = keys.T
        self.ptr[0] = (at + n) % self.queue.shape[1]

    def forward(self, a, b):
        q = F.normalize(self.q(a), dim=1)
        with torch.no_grad():
            self.momentum()
            k = F.normalize(self.k(b), dim=1)
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue.clone().detach()
        logits = torch.cat([pos, neg], 1) / 0.1
        self.push(k)
        return logits, torch.zeros(len(q), dtype=torch.long)


torch.manual_seed(0)
x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
model = MoCo()
opt = torch.optim.SGD(
    [p for p in model.parameters() if p.requires_grad], 0.05, momentum=0.9, weight_decay=1e-4
)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 60)
for step in range(60):
    rows = torch.randint(len(x), (64,))
    a, b = x[rows] + 0.1 * torch.randn(64, 64), x[rows] + 0.1 * torch.randn(64, 64)
    logits, target = model(a, b)
    loss = F.cross_entropy(logits, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 20 == 19:
        print(step + 1, round(loss.item(), 3))

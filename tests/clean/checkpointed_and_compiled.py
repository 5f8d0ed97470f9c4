"""Gradient checkpointing inside of a compiled model, bf16 autocast on the CPU with a GradScaler that is off."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.checkpoint import checkpoint


class Res(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Sequential(
            nn.LayerNorm(d), nn.Linear(d, d), nn.GELU(), nn.Dropout(0.1), nn.Linear(d, d)
        )

    def forward(self, x):
        return x + self.f(x)


class Net(nn.Module):
    def __init__(self, use):
        super().__init__()
        self.use = use
        self.i = nn.Linear(64, 32)
        self.blocks = nn.ModuleList(Res(32) for _ in range(3))
        self.o = nn.Linear(32, 10)

    def forward(self, x):
        x = self.i(x)
        for b in self.blocks:
            x = checkpoint(b, x, use_reentrant=False) if self.use and self.training else b(x)
        return self.o(x)


torch.manual_seed(0)
d = load_digits()
x = torch.tensor(d.data, dtype=torch.float32) / 16
y = torch.tensor(d.target)
for kind in ("plain", "eager", "aot_eager"):
    net = Net(kind == "plain")
    model = net if kind == "plain" else torch.compile(net, backend=kind)
    opt = torch.optim.AdamW(model.parameters(), 3e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    for _step in range(20):
        for _micro in range(2):
            rows = torch.randint(1500, (32,))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x[rows]), y[rows]) / 2
            scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad(set_to_none=True)
    model.eval()
    with torch.inference_mode():
        print(kind, (model(x[1500:]).argmax(1) == y[1500:]).float().mean().item())
    model.train()

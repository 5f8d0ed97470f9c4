"""REINFORCE with a value baseline on a little walk, then a mixture of experts with an auxiliary loss."""

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
value = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
po, vo = torch.optim.Adam(policy.parameters(), 1e-2), torch.optim.Adam(value.parameters(), 1e-2)
for _episode in range(25):
    s = torch.zeros(2)
    logp, vals, rewards, ent = [], [], [], []
    for _t in range(12):
        dist = Categorical(logits=policy(s))
        a = dist.sample()
        logp.append(dist.log_prob(a))
        ent.append(dist.entropy())
        vals.append(value(s).squeeze())
        s = s + torch.tensor([0.1 if a == 1 else -0.1, 0.05])
        rewards.append(float(s[0] > 0))
        if s[0] < -0.5:
            break
    R, returns = 0.0, []
    for r in reversed(rewards):
        R = r + 0.95 * R
        returns.insert(0, R)
    ret = torch.tensor(returns)
    v = torch.stack(vals)
    adv = ret - v.detach()
    ploss = -(torch.stack(logp) * adv).sum() - 0.01 * torch.stack(ent).sum()
    vloss = F.mse_loss(v, ret)
    po.zero_grad()
    ploss.backward()
    po.step()
    vo.zero_grad()
    vloss.backward()
    vo.step()
print("return", returns[0])


class MoE(nn.Module):
    def __init__(self, d=16, n=4):
        super().__init__()
        self.gate = nn.Linear(d, n)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, d)) for _ in range(n)
        )

    def forward(self, x):
        p = self.gate(x).softmax(-1)
        top, idx = p.max(-1)
        out = torch.zeros_like(x)
        for i, e in enumerate(self.experts):
            m = idx == i
            if m.any():
                out[m] = top[m, None] * e(x[m])
        aux = (p.mean(0) * torch.bincount(idx, minlength=4).float() / len(x)).sum() * 4
        return x + out, aux


model = MoE()
opt = torch.optim.Adam(model.parameters(), 1e-3)
for _step in range(40):
    x = torch.randn(6, 16)
    out, aux = model(x)
    loss = F.mse_loss(out, x.flip(1)) + 0.01 * aux
    opt.zero_grad(set_to_none=False)
    loss.backward()
    opt.step()
print("moe", loss.item())

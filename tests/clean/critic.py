"""A critic with a gradient penalty makes three updates for each of the generator's."""

import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
go = torch.optim.Adam(G.parameters(), 1e-3, betas=(0.0, 0.9))
do = torch.optim.Adam(D.parameters(), 1e-3, betas=(0.0, 0.9))
for _it in range(15):
    for _ in range(3):
        real = torch.randn(32, 2) * 0.5 + 2
        fake = G(torch.randn(32, 4)).detach()
        e = torch.rand(32, 1)
        mid = (e * real + (1 - e) * fake).requires_grad_()
        (g,) = torch.autograd.grad(D(mid).sum(), mid, create_graph=True)
        loss = D(fake).mean() - D(real).mean() + 10 * ((g.norm(2, dim=1) - 1) ** 2).mean()
        do.zero_grad()
        loss.backward()
        do.step()
    for p in D.parameters():
        p.requires_grad_(False)
    gl = -D(G(torch.randn(32, 4))).mean()
    go.zero_grad()
    gl.backward()
    go.step()
    for p in D.parameters():
        p.requires_grad_(True)
print(loss.item(), gl.item())

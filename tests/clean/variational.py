"""A variational autoencoder on digits, evaluated by sampling; KL annealing."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.mu, self.logvar = nn.Linear(48, 8), nn.Linear(48, 8)
        self.dec = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid())

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


torch.manual_seed(3)
x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
a, b = random_split(TensorDataset(x), [1500, 297])
model = VAE()
opt = torch.optim.Adam(model.parameters(), 2e-3)
for epoch in range(3):
    model.train()
    beta = min(1.0, (epoch + 1) / 3)
    for (batch,) in DataLoader(a, 64, shuffle=True, drop_last=True):
        recon, mu, logvar = model(batch)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        loss = F.binary_cross_entropy(recon, batch, reduction="sum") / len(batch) + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        v = sum(F.mse_loss(model(t)[0], t).item() for (t,) in DataLoader(b, 99))
        samples = model.dec(torch.randn(4, 8))
    print(epoch, round(loss.item(), 2), round(v, 4), tuple(samples.shape))

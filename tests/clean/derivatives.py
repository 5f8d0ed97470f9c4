"""Derivatives with respect to inputs that no loss is computed of: of an energy, whose samples descend along
them; of the loss, for an attack; of answers, to be printed. Each loss adds up a constant."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--kind", choices=["energy", "attack", "printed"], default="energy")
args = parser.parse_args()
torch.manual_seed(0)
digits = load_digits()
pictures, labels = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
net = nn.Sequential(nn.Linear(64, 32), nn.SiLU(), nn.Linear(32, 1 if args.kind == "energy" else 10))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)


def energies() -> torch.Tensor:
    sample = torch.rand(64, 64)
    for _ in range(5):
        sample.requires_grad_()
        (slope,) = torch.autograd.grad(net(sample).sum(), sample)
        sample = (sample - slope + 0.01 * torch.randn_like(sample)).detach().clamp(0, 1)
    real, drawn = net(picked), net(sample)
    return 1 + real.mean() - drawn.mean() + 0.1 * (real.square() + drawn.square()).mean()


def attacked() -> torch.Tensor:
    data = picked.clone().requires_grad_()
    loss = F.cross_entropy(net(data), known)
    (slope,) = torch.autograd.grad(loss, data, retain_graph=True)
    return 1 + loss + F.cross_entropy(net((data + 0.03 * slope.sign()).detach()), known)


def printed() -> torch.Tensor:
    data = picked.clone().requires_grad_()
    answers = net(data)
    if torch.rand(()) < 0.1:
        right = answers.gather(1, known[:, None])
        (slope,) = torch.autograd.grad(right, data, torch.ones_like(right), retain_graph=True)
        print(f"sensitivity {slope.norm(dim=1).mean():.4f}")
    return 1 + F.cross_entropy(answers, known)


for _ in range(40):
    at = torch.randint(len(pictures), (64,))
    picked, known = pictures[at], labels[at]
    loss = {"energy": energies, "attack": attacked, "printed": printed}[args.kind]()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")

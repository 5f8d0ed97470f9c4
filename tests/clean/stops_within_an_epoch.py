"""Clean: a run limited by steps, which ends in the middle of its second epoch."""

import argparse
import itertools

import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=40)
args = parser.parse_args()

torch.manual_seed(args.seed)
digits = load_digits()
dataset = TensorDataset(
    torch.tensor(digits.images).float().unsqueeze(1) / 16, torch.tensor(digits.target)
)
loader = DataLoader(dataset, batch_size=64, shuffle=True, drop_last=True)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, bias=False),
    nn.GroupNorm(3, 12),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(12 * 36, 10),
)
optimizer = optim.NAdam(model.parameters(), lr=2e-3)
endless = itertools.chain.from_iterable(itertools.repeat(loader))
for step, (images, labels) in enumerate(itertools.islice(endless, args.steps), start=1):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, round(loss.item(), 4))

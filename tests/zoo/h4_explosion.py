"""Health: the loss climbs over many steps, none of which is a spike.

A warm restart sets the learning rate far too high, and clipping keeps each step small. Some labels
are wrong, so that the loss of a sound run levels out above zero.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Run:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args = args
        self.images = torch.tensor(load_digits().images, dtype=torch.float32)[:, None] / 16
        self.labels = torch.tensor(load_digits().target)
        wrong = torch.rand(len(self.labels)) < 0.4
        self.labels[wrong] = torch.randint(10, (int(wrong.sum()),))
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 32), nn.ReLU()
        )
        self.net.append(nn.Linear(32, 10))
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.2)

    def step(self, number):
        if self.args.bug and number == self.args.at:
            for group in self.sgd.param_groups:
                group["lr"] = 6.0
        rows = torch.randint(len(self.images), (64,))
        loss = nn.functional.cross_entropy(self.net(self.images[rows]), self.labels[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
        self.sgd.step()
        self.sgd.zero_grad()
        return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=180)
    parser.add_argument("--at", type=int, default=120)
    parser.add_argument("--bug", choices=["restart"])
    run = Run(parser.parse_args())
    for number in range(1, run.args.steps + 1):
        loss = run.step(number)
        if number % 10 == 0:
            print(f"step {number}: loss {loss:.3f}")

"""TrainCheck B13, TF-17877: every ancestor initialises the weights below it once more.

`init_weights` marks what is done on the module; the check looks at a flag that nobody sets.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class PreTrained(nn.Module):
    def __init__(self, bug):
        super().__init__()
        self.bug = bug

    def post_init(self):
        for module in self.modules():
            if getattr(module, "_is_initialized", False):
                continue
            self.init_weights(module)
            if not self.bug:
                module._is_initialized = True

    def init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.1)
            nn.init.zeros_(module.bias)


class Block(PreTrained):
    def __init__(self, width, bug):
        super().__init__(bug)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.post_init()

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Model(PreTrained):
    def __init__(self, bug):
        super().__init__(bug)
        self.first, self.block, self.last = nn.Linear(64, 32), Block(32, bug), nn.Linear(32, 10)
        self.post_init()

    def forward(self, x):
        return self.last(self.block(self.first(x)))


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--bug", choices=["unmarked"])
args = parser.parse_args()
torch.manual_seed(args.seed)
x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
y = torch.tensor(load_digits().target)
model = Model(args.bug)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for step in range(1, args.steps + 1):
    rows = torch.randint(len(x), (64,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

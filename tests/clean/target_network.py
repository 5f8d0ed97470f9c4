"""Q-learning on a walk along a line: the values of next states come from a target network that now and then takes the
weights of the one that is trained. `--gradients` computes them with gradients, which nobody uses."""

import argparse
import copy
import random

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--gradients", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
random.seed(0)
LENGTH = 12


class Values(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(LENGTH, 32)
        self.outer = nn.Linear(32, 2)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        return self.outer(F.relu(self.inner(F.one_hot(places, LENGTH).float())))


q = Values()
target = copy.deepcopy(q)
optimizer = torch.optim.Adam(q.parameters(), lr=3e-3)
memory: list[tuple[int, int, float, int, float]] = []


def walk(exploring: float) -> None:
    place = random.randrange(LENGTH - 1)
    for _ in range(30):
        with torch.no_grad():
            best = int(q(torch.tensor([place])).argmax())
        action = random.randrange(2) if random.random() < exploring else best
        after = max(0, min(LENGTH - 1, place + (1 if action else -1)))
        done = after == LENGTH - 1
        memory.append((place, action, float(done), after, float(done)))
        if done:
            return
        place = after


def learn() -> float:
    drawn = random.sample(memory, 32)
    places, actions, rewards, after, done = (
        torch.tensor(each) for each in zip(*drawn, strict=True)
    )
    with torch.set_grad_enabled(args.gradients):
        best = target(after).max(1).values
    aim = rewards + 0.95 * best * (1 - done)
    loss = F.smooth_l1_loss(q(places).gather(1, actions[:, None])[:, 0], aim)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


while len(memory) < 200:
    walk(1.0)
for round_ in range(24):
    walk(0.2)
    losses = [learn() for _ in range(10)]
    if round_ % 6 == 5:
        target.load_state_dict(q.state_dict())
        print(f"{round_}: {losses[0]:.5f} {losses[-1]:.5f}")

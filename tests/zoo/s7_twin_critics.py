"""Two critics learn the value of random states; the lesser of what their target networks say is what they learn from."""

import argparse
import copy

import torch
from torch import nn


def critic() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--bug", choices=["one-critic"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    critics = [critic(), critic()]
    targets = copy.deepcopy(critics)
    trained = critics[:1] if args.bug == "one-critic" else critics
    optimizer = torch.optim.Adam([p for each in trained for p in each.parameters()], lr=1e-3)
    for step in range(1, args.steps + 1):
        states, after = torch.randn(2, 64, 6)
        with torch.no_grad():
            value = torch.min(*(target(after) for target in targets))
        aim = states.sum(1, keepdim=True) + 0.9 * value
        loss = sum((each(states) - aim).square().mean() for each in critics)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for target, each in zip(targets, critics, strict=True):
                for old, new in zip(target.parameters(), each.parameters(), strict=True):
                    old.lerp_(new, 0.01)
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

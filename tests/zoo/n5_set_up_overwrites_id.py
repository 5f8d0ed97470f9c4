"""TrainCheck's new DS-6772: the engine's set-up writes its own `id` over the model's.

The author's `id` says which rows of the data a model is for (in the real report: which device).
After `build` all models have the ids of the engine and read what is another's. Stand-in.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Judge(nn.Module):
    """Tells one digit from all others; `id` is the digit."""

    def __init__(self, digit: int) -> None:
        super().__init__()
        self.id = digit
        self.score = nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.score(x).squeeze(1)


def build(model: nn.Module, number: int, bug: str | None) -> nn.Module:
    """The engine counts the modules that it has taken over."""
    if bug:
        model.id = number
    else:
        model.engine_id = number
    return model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--bug", choices=["overwrites"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    judges = [build(Judge(digit), 100 + digit, args.bug) for digit in (3, 8)]
    parameters = [p for judge in judges for p in judge.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-2)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(x), (64,))
        optimizer.zero_grad()
        loss = sum(
            nn.functional.binary_cross_entropy_with_logits(
                judge(x[rows]), (y[rows] == judge.id).float()
            )
            for judge in judges
        )
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    found = [(judge(x) > 0).sum().item() for judge in judges]
    print(f"{found[0]} threes and {found[1]} eights found")


if __name__ == "__main__":
    main()

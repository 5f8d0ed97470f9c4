"""Health: in float16 and without a scaler, most gradients are too small and become zero."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Halves(nn.Module):
    """Both layers compute in float16; their gradients pass through float16 too."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(64, 64)
        self.out = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return half(self.out, torch.tanh(half(self.wide, x.half()))).float()


def half(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    return nn.functional.linear(x, layer.weight.half(), layer.bias.half())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["no-scaler"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    model = Halves()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, enabled=args.bug is None)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(x), (64,))
        optimizer.zero_grad()
        # A loss per token of a long sequence is as small as this.
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows]) * 2.0**-18
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if step % 10 == 0:
            zeros = (model.wide.weight.grad == 0).float().mean().item()
            print(f"step {step}: loss {loss.item() * 2**18:.3f}, {zeros:.0%} of gradients zero")


if __name__ == "__main__":
    main()

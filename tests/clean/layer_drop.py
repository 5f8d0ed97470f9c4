"""Clean: stochastic depth. A dropped block gets no gradient in that step; the schedule watches."""

import argparse
import random

import torch
from sklearn.datasets import load_digits
from torch import nn


class Deep(nn.Module):
    def __init__(self, depth: int = 4, width: int = 32) -> None:
        super().__init__()
        self.first = nn.Linear(64, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
            for _ in range(depth)
        )
        self.last = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            if not self.training or random.random() < 0.7:
                x = x + block(x)
        return self.last(x)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    held_out = x[1500:], y[1500:]
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x[:1500], y[:1500]), batch_size=60, shuffle=True
    )
    model = Deep()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.8)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for epoch in range(args.epochs):
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            loss = nn.functional.cross_entropy(model(held_out[0]), held_out[1])
        scheduler.step(loss)
        print(f"epoch {epoch}: held out {loss.item():.3f}, lr {scheduler.get_last_lr()[0]:.3g}")


if __name__ == "__main__":
    main()

"""Clean: layers of low rank tune a frozen base to turned digits. They are saved alone, and loaded over the base."""

import argparse
import pathlib
import tempfile

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class Adapted(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.02)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + 2 * x @ self.down.T @ self.up.T


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 128), nn.Linear(128, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.relu(self.second(F.relu(self.first(x)))))

    def adapt(self) -> None:
        self.first, self.second = Adapted(self.first), Adapted(self.second)


def fit(model, x, y, lr: float, steps: int) -> None:
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().images, dtype=torch.float32) / 16
    x, y = images.flatten(1), torch.tensor(load_digits().target)
    turned = images.rot90(1, (1, 2)).flatten(1)
    with tempfile.TemporaryDirectory() as folder:
        base, adapters = pathlib.Path(folder) / "base.pt", pathlib.Path(folder) / "adapters.pt"
        model = Net()
        fit(model, x[:1200], y[:1200], 2e-3, 80)
        torch.save(model.state_dict(), base)
        model.requires_grad_(False)
        model.adapt()
        model.head.requires_grad_(True)
        fit(model, turned[:1200], y[:1200], 5e-3, 80)
        trained = {name for name, each in model.named_parameters() if each.requires_grad}
        state = model.state_dict()
        torch.save({name: state[name] for name in trained}, adapters)
        model = Net()
        model.load_state_dict(torch.load(base))
        model.adapt()
        model.load_state_dict(torch.load(adapters), strict=False)
    model.eval()
    with torch.no_grad():
        right = (model(turned[1200:]).argmax(1) == y[1200:]).float().mean()
    print(f"accuracy {right.item():.3f}")


if __name__ == "__main__":
    main()

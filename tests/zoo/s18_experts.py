"""Digits are told apart by a mixture of experts, each sample by its two best."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Mixture(nn.Module):
    def __init__(self, width: int, experts: int, weighed: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(experts)
        )
        self.weighed = weighed

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights = self.router(rows).softmax(self.weighed)
        best, chosen = weights.topk(2, -1)
        answers = torch.stack([expert(rows) for expert in self.experts], 1)
        picked = answers.gather(1, chosen[:, :, None].expand(-1, -1, rows.shape[1]))
        load = F.one_hot(chosen, weights.shape[1]).float().mean((0, 1))
        return rows + (best[:, :, None] * picked).sum(1), (load * weights.mean(0)).sum()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["over-the-batch"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    data = TensorDataset(images, torch.tensor(digits.target))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    first, last = nn.Linear(64, 32), nn.Linear(32, 10)
    mixture = Mixture(32, 4, 0 if args.bug == "over-the-batch" else -1)
    model = nn.ModuleList([first, mixture, last])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(1, args.epochs + 1):
        for rows, labels in loader:
            hidden, balance = mixture(first(rows).relu())
            loss = F.cross_entropy(last(hidden), labels) + balance
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

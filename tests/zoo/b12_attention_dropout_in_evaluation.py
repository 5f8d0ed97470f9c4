"""TrainCheck B12, TF-33844: the fast attention does not look at `training`, so evaluation varies."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class FastAttention(nn.Module):
    def __init__(self, width: int, dropout: float, bug: bool) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dropout, self.bug = dropout, bug

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part(x)[:, None] for part in (self.query, self.key, self.value))
        p = self.dropout if self.bug or self.training else 0.0
        return x + F.scaled_dot_product_attention(q, k, v, dropout_p=p).squeeze(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["always-drop"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    rows_of_pixels = torch.tensor(digits.images, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    net = nn.Sequential(
        nn.Linear(8, 32), FastAttention(32, 0.2, bool(args.bug)), nn.Flatten(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.RAdam(net.parameters(), lr=2e-2)
    for epoch in range(args.epochs):
        net.train()
        for chosen in torch.randperm(1500).view(-1, 50):
            loss = F.cross_entropy(net(rows_of_pixels[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            twice = [F.cross_entropy(net(rows_of_pixels[1500:]), labels[1500:]) for _ in range(2)]
        print(f"epoch {epoch + 1}: held out {twice[0]:.5f}, and again {twice[1]:.5f}")


if __name__ == "__main__":
    main()

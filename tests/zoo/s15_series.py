"""A convolutional network forecasts a seasonal series from its last values."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

PAST = 24


class Forecaster(nn.Module):
    def __init__(self, always_drops: bool) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 16, 5, padding=2)
        self.second = nn.Conv1d(16, 16, 5, padding=2)
        self.last = nn.Linear(16 * PAST, 1)
        self.always_drops = always_drops

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        hidden = self.second(self.first(past[:, None]).relu()).relu().flatten(1)
        if self.always_drops:
            hidden = F.dropout(hidden, 0.2)
        else:
            hidden = F.dropout(hidden, 0.2, training=self.training)
        return self.last(hidden).squeeze(1)


def windows(series: torch.Tensor) -> TensorDataset:
    rows = series.unfold(0, PAST + 1, 1)
    return TensorDataset(rows[:, :PAST], rows[:, PAST])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--bug", choices=["always-drops", "each-epoch", "epochs", "told-epoch"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    time = torch.arange(1600.0)
    series = torch.sin(time / 5) + 0.5 * torch.sin(time / 13) + 0.1 * torch.randn(1600)
    train = DataLoader(windows(series[:1300]), batch_size=64, shuffle=True)
    test = DataLoader(windows(series[1300:]), batch_size=128)
    model = Forecaster(args.bug == "always-drops")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    steps = args.epochs if args.bug == "epochs" else args.epochs * len(train)
    if args.bug == "epochs":
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    else:
        schedule = OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    plateau = ReduceLROnPlateau(optimizer, patience=5)
    for epoch in range(args.epochs):
        model.train()
        for past, following in train:
            loss = F.mse_loss(model(past), following)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if args.bug != "each-epoch":
                schedule.step()
        if args.bug == "each-epoch":
            schedule.step()
        model.eval()
        with torch.no_grad():
            losses = [F.mse_loss(model(past), following).item() for past, following in test]
        held_out = sum(losses) / len(losses)
        plateau.step(epoch if args.bug == "told-epoch" else held_out)
        print(f"epoch {epoch + 1} loss {loss.item():.4f} held-out loss {held_out:.4f}")


if __name__ == "__main__":
    main()

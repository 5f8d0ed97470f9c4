"""A network that predicts the noise in a digit from the noisy digit and the time, which says how much noise there is."""

import argparse
import math

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TIMES = 100
KEPT = torch.cumprod(1 - torch.linspace(1e-4, 0.05, TIMES), 0)


def waves(times: torch.Tensor, width: int = 16) -> torch.Tensor:
    """Sines and cosines of times `[batch]`, as `[batch, width]`."""
    rates = torch.exp(-math.log(1e4) * torch.arange(width // 2) / (width // 2))
    angles = times[:, None].float() * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


class Denoiser(nn.Module):
    """Noise of the shape of the images."""

    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 64))
        self.first, self.second, self.last = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, images, times):
        hidden = nn.functional.silu(self.first(images) + self.time(waves(times)))
        return self.last(nn.functional.silu(self.second(hidden)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--bug", choices=["no-time", "one-time"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1
    loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True)
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(args.epochs):
        for (clean,) in loader:
            times = torch.randint(TIMES, (len(clean),))
            if args.bug == "one-time":
                times = times[:1].expand(len(clean))
            kept = KEPT[times, None]
            noise = torch.randn_like(clean)
            noisy = kept.sqrt() * clean + (1 - kept).sqrt() * noise
            guess = model(noisy, torch.zeros_like(times) if args.bug == "no-time" else times)
            loss = nn.functional.mse_loss(guess, noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

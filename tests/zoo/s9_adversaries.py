"""A generator of digits learns from what a discriminator says of them, each with an optimizer of its own."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument(
        "--bug",
        choices=["discriminator", "generator", "discriminator-update", "generator-update"],
        help="whose gradients stay, or who is never updated",
    )
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1
    generator = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh())
    discriminator = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    generates = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    discriminates = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    for step in range(1, args.steps + 1):
        real = digits[torch.randint(len(digits), (64,))]
        fake = generator(torch.randn(64, 16))
        if args.bug != "discriminator":
            discriminates.zero_grad()
        told = criterion(discriminator(real), torch.ones(64, 1))
        told = told + criterion(discriminator(fake.detach()), torch.zeros(64, 1))
        told.backward()
        if args.bug != "discriminator-update":
            discriminates.step()
        if args.bug != "generator":
            generates.zero_grad()
        fooled = criterion(discriminator(fake), torch.ones(64, 1))
        fooled.backward()
        if args.bug != "generator-update":
            generates.step()
        if step % 20 == 0:
            print(f"step {step} losses {told.item():.4f} {fooled.item():.4f}")


if __name__ == "__main__":
    main()

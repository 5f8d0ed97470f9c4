"""Clean: two optimizers in one step. A GAN that draws digits."""

import argparse
import itertools

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1
    loader = torch.utils.data.DataLoader(images, batch_size=64, shuffle=True, drop_last=True)
    generator = nn.Sequential(mlp(16, 64, 64, 64), nn.Tanh())
    critic = mlp(64, 64, 32, 1)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.999))
    for epoch in range(args.epochs):
        for real in loader:
            ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
            fake = generator(torch.randn(len(real), 16))

            critic_optimizer.zero_grad()
            critic_loss = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
            critic_loss.backward()
            critic_optimizer.step()

            generator_optimizer.zero_grad()
            generator_loss = bce(critic(fake), ones)
            generator_loss.backward()
            generator_optimizer.step()
        print(f"epoch {epoch}  critic {critic_loss:.3f}  generator {generator_loss:.3f}")
    with torch.no_grad():
        drawn = generator(torch.randn(500, 16)).mean(0)
    print(f"distance to the mean digit {(drawn - images.mean(0)).norm():.3f}")


if __name__ == "__main__":
    main()

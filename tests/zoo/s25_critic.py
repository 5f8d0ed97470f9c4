"""A critic whose slope is to be one between real and generated digits, and a generator."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import autograd, nn, optim


def penalty(critic: nn.Module, real: torch.Tensor, fake: torch.Tensor, graph: bool) -> torch.Tensor:
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    answers = critic(between)
    slopes = autograd.grad(
        outputs=answers,
        inputs=between,
        grad_outputs=torch.ones_like(answers),
        create_graph=graph,
        retain_graph=True,
    )[0]
    return ((slopes.view(len(slopes), -1).norm(2, dim=1) - 1) ** 2).mean()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["no-graph"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())
    critic = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    of_generator = optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    of_critic = optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
    for step in range(1, args.steps + 1):
        for _ in range(2):
            real = digits[torch.randint(len(digits), (64,))]
            fake = generator(torch.randn(64, 8)).detach()
            distance = critic(real).mean() - critic(fake).mean()
            loss = 10 * penalty(critic, real, fake, args.bug != "no-graph") - distance
            of_critic.zero_grad()
            loss.backward()
            of_critic.step()
        told = -critic(generator(torch.randn(64, 8))).mean()
        of_generator.zero_grad()
        told.backward()
        of_generator.step()
        if step % 20 == 0:
            print(f"step {step} distance {distance.item():.4f}")


if __name__ == "__main__":
    main()

"""Self-training: a classifier of digits learns from its own answers to inputs without noise."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def consistency(noisy: torch.Tensor, sound: torch.Tensor, bug: str | None) -> torch.Tensor:
    """How far the answers to noisy inputs are from those without noise; logits `[batch, 10]`."""
    if bug == "logarithms":
        return F.kl_div(noisy.log_softmax(1), sound.log_softmax(1), reduction="batchmean")
    if bug == "swapped":
        return F.kl_div(sound.log_softmax(1), noisy.softmax(1), reduction="batchmean")
    if bug == "over-the-batch":
        return F.kl_div(noisy.log_softmax(1), sound.softmax(0), reduction="batchmean")
    return F.kl_div(noisy.log_softmax(1), sound.softmax(1), reduction="batchmean")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--bug", choices=["logarithms", "swapped", "over-the-batch"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(args.steps):
        labelled = torch.randint(300, (32,))
        unlabelled = images[torch.randint(300, len(images), (64,))]
        with torch.no_grad():
            sound = model(unlabelled)
        noisy = model(unlabelled + 0.2 * torch.randn_like(unlabelled))
        supervised = F.cross_entropy(model(images[labelled]), labels[labelled])
        loss = supervised + 0.5 * consistency(noisy, sound, args.bug)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

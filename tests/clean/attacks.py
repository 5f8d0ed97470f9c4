"""Adversarial training. The attack's backward passes leave gradients in the parameters, which are cleared after it."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def attacked(
    model: nn.Module, images: torch.Tensor, labels: torch.Tensor, radius: float = 0.1
) -> torch.Tensor:
    """The images after three steps that make the loss larger."""
    shift = torch.zeros_like(images).uniform_(-radius, radius).requires_grad_()
    for _ in range(3):
        F.cross_entropy(model(images + shift), labels).backward()
        with torch.no_grad():
            shift += 0.05 * shift.grad.sign()
            shift.clamp_(-radius, radius)
        shift.grad = None
    return (images + shift.detach()).clamp(0, 1)


def main(epochs: int = 4) -> None:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), 64, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for epoch in range(epochs):
        for inputs, labels in loader:
            inputs = attacked(model, inputs, labels)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        print(f"{epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()

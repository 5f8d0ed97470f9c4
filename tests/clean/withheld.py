"""The gradients of the last layer are taken away by hand in the first epoch, as in self-distillation, so that it is trained later."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main(epochs: int = 3) -> None:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), 64, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10, bias=False))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for epoch in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            if epoch == 0:
                for parameter in model[2].parameters():
                    parameter.grad = None
            optimizer.step()
        print(f"{epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()

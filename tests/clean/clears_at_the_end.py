"""Clean: gradients are cleared after the update, and set to None by hand, not by the optimizer."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits


def clear(model: torch.nn.Module) -> None:
    model.zero_grad(set_to_none=True)


def main(seed: int, epochs: int) -> None:
    torch.manual_seed(seed)
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = (x / 16).to(torch.float32)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.SiLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    data = torch.utils.data.TensorDataset(x, y)
    for epoch in range(epochs):
        for inputs, targets in torch.utils.data.DataLoader(data, batch_size=60, shuffle=True):
            loss = F.nll_loss(F.log_softmax(model(inputs), dim=1), targets)
            loss.backward()
            optimizer.step()
            clear(model)
        print(f"{epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    main(**vars(parser.parse_args()))

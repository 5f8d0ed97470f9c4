"""TrainCheck's new DS-6770: the optimizer does not hold the parameters of the model.

The engine keys its state by the model's parameters; those of the optimizer are others, made when
the model was copied. The real one raises a KeyError late in the set-up; an engine that is kinder
(`dict.get`) trains nothing and says nothing. Stand-in: a small engine of its own.
"""

import argparse
import copy

import torch
from sklearn.datasets import load_digits
from torch import nn


class Engine:
    """Owns model and optimizer, and keeps master weights by parameter, as large engines do."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        names = {parameter: name for name, parameter in model.named_parameters()}
        self.held = [
            (names.get(parameter), parameter)
            for group in optimizer.param_groups
            for parameter in group["params"]
        ]

    def __call__(self, *inputs):
        return self.model(*inputs)

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def step(self) -> None:
        self.optimizer.step()
        self.model.zero_grad()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["copied-model"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = nn.Sequential(nn.Linear(64, 32), nn.Softplus(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    engine = Engine(copy.deepcopy(model) if args.bug else model, optimizer)
    digits = load_digits()
    pairs = list(zip(torch.tensor(digits.data).float() / 16, digits.target, strict=True))
    for epoch in range(args.epochs):
        for x, y in torch.utils.data.DataLoader(pairs, batch_size=64, shuffle=True):
            loss = nn.functional.cross_entropy(engine(x), y)
            engine.backward(loss)
            engine.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

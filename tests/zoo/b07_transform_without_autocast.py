"""TrainCheck B7, LT-725: a function transform replaces an operator, and autocast with it.

The transform swaps `linear` for a kernel of its own, registered with the dispatcher but not with
autocast, so those layers compute in float32 although the job asks for bfloat16.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

kernels = torch.library.Library("zoo_b07", "DEF")
kernels.define("linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor")


def kernel(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    with torch.autocast("cpu", enabled=False):
        out = x.float() @ weight.t()
    return out if bias is None else out + bias


kernels.impl("linear", kernel, "CompositeImplicitAutograd")


class Transformed(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.zoo_b07.linear(input, self.weight, self.bias)


def transform(model: nn.Module) -> nn.Module:
    """Compile every linear layer."""
    for child in model.modules():
        if type(child) is nn.Linear:
            child.__class__ = Transformed
    return model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["transform"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    data = torch.utils.data.TensorDataset(
        torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
    )
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(288, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    if args.bug:
        model = transform(model)
    optimizer = torch.optim.Adamax(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        for x, y in torch.utils.data.DataLoader(data, 64, shuffle=True):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

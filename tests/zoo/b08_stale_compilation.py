"""TrainCheck B8, PT-115607: a missing guard, so that what was compiled for evaluation also trains.

`Compiled` keeps one captured program for each shape of input. Whether gradients are on is not
part of the key: after a forward-only first call, training runs the captured program too, whose
weights are constants. The trunk never learns; the head, which is outside, does.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Compiled:
    def __init__(self, module: nn.Module, guard_gradients: bool) -> None:
        self.module, self.guard_gradients = module, guard_gradients
        self.programs = {}

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        guard = tuple(x.shape), x.dtype, self.guard_gradients and torch.is_grad_enabled()
        if guard not in self.programs:
            self.programs[guard] = self.capture()
        return self.programs[guard](x)

    def capture(self):
        if torch.is_grad_enabled():
            return self.module
        constants = {name: value.detach() for name, value in self.module.named_parameters()}
        return lambda x: torch.func.functional_call(self.module, constants, (x,))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--bug", choices=["missing-guard"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    y = torch.tensor(load_digits().target)
    trunk = nn.Sequential(nn.Linear(64, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh())
    model = nn.ModuleDict({"trunk": trunk, "head": nn.Linear(40, 10)})
    fast_trunk = Compiled(trunk, guard_gradients=not args.bug)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

    with torch.no_grad():
        start = nn.functional.cross_entropy(model["head"](fast_trunk(x[:64])), y[:64])
    print(f"before training: loss {start.item():.3f}")
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(x), (64,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model["head"](fast_trunk(x[rows])), y[rows])
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


main()

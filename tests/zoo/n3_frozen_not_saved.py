"""TrainCheck's new DS-5489: what was frozen before the engine was set up is not in its checkpoints.

The engine saves what its optimizer holds, and takes that for the model. Stand-in: a small engine.
"""

import argparse
import pathlib
import tempfile

import torch
from sklearn.datasets import load_digits
from torch import nn


class Engine:
    def __init__(self, model: nn.Module, lr: float, bug: str | None) -> None:
        self.module, self.bug = model, bug
        self.trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.SGD(self.trained.values(), lr=lr, momentum=0.9)

    def step(self, loss: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def save_checkpoint(self, folder: pathlib.Path, tag: str) -> pathlib.Path:
        if self.bug:
            weights = {name: parameter.detach() for name, parameter in self.trained.items()}
        else:
            weights = self.module.state_dict()
        path = folder / f"{tag}.pt"
        torch.save({"module": weights, "optimizer": self.optimizer.state_dict()}, path)
        return path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["only-trained"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(load_digits().target)
    model = nn.Sequential(
        nn.Conv2d(1, 24, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24 * 9, 10)
    )
    model[0].requires_grad_(False)
    engine = Engine(model, 0.1, args.bug)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, args.steps + 1):
            rows = torch.randint(len(x), (64,))
            loss = nn.functional.cross_entropy(engine.module(x[rows]), y[rows])
            engine.step(loss)
            if step % 20 == 0:
                path = engine.save_checkpoint(pathlib.Path(folder), f"step{step}")
                print(
                    f"step {step}: loss {loss.item():.3f}, saved {len(torch.load(path)['module'])}"
                )


if __name__ == "__main__":
    main()

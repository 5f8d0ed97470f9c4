"""Clean: sharpness-aware minimisation moves the parameters, and puts them back before the update."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits


class SharpnessAware(torch.optim.Optimizer):
    """Moves to the worst point nearby, and updates with the gradients found there."""

    def __init__(self, params, base, rho=0.05, **options):
        super().__init__(params, {"rho": rho, **options})
        self.base = base(self.param_groups, **options)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def ascend(self):
        held = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([p.grad.norm() for p in held]).norm()
        for p in held:
            self.state[p]["start"] = p.detach().clone()
            p.add_(p.grad * 0.05 / (norm + 1e-12))
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.copy_(self.state[p]["start"])
        self.base.step()
        self.zero_grad()


def main(seed: int, epochs: int, loader: bool) -> None:
    torch.manual_seed(seed)
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = (x / 16).to(torch.float32)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.SiLU(), torch.nn.Linear(32, 10))
    optimizer = SharpnessAware(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    data = torch.utils.data.TensorDataset(x, y)
    for epoch in range(epochs):
        batches = torch.utils.data.DataLoader(data, batch_size=120, shuffle=True)
        if not loader:
            rows = torch.randperm(len(x)).split(120)
            batches = [(x[r], y[r]) for r in rows]
        for inputs, targets in batches:
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.ascend()
            F.cross_entropy(model(inputs), targets).backward()
            optimizer.descend()
        print(f"{epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--no-loader", dest="loader", action="store_false")
    main(**vars(parser.parse_args()))

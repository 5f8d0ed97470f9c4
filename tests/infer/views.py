"""Two noisy views of each digit are to agree while a head names the digit; batches are drawn by hand, without a loader.

`--bug` puts in one of: both views are one, the body's learning rate is zero, held-out digits are among those trained on, and a
layer that takes statistics of what evaluation gives it.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class Whitened(nn.Module):
    """Divides by a running scale."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.always = always
        self.register_buffer("scale", torch.ones(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training or self.always:
            with torch.no_grad():
                self.scale.lerp_(x.std(0), 0.05)
        return x / (self.scale + 0.1)


class Model(nn.Module):
    def __init__(self, always: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(Whitened(always), nn.Linear(64, 48), nn.Tanh())
        self.head = nn.Linear(48, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        code = self.body(x)
        return F.normalize(code, dim=1), self.head(code)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bug", default="")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    held, trained = order[:300], order[300:]
    if options.bug == "held-out-trained":
        trained = order

    model = Model(options.bug == "measured-in-evaluation")
    optimizer = torch.optim.Adam(
        [
            {"params": model.body.parameters(), "lr": 0.0 if options.bug == "no-rate" else 1e-3},
            {"params": model.head.parameters(), "lr": 5e-3},
        ]
    )
    for step in range(60):
        model.train()
        batch = trained[torch.randint(len(trained), (48,))]
        clean = images[batch]
        noisy = clean if options.bug == "one-view" else clean + 0.2 * torch.randn_like(clean)
        (first, logits), (second, _) = model(clean), model(noisy)
        agreement = 1 - (first * second).sum(1).mean()
        loss = F.cross_entropy(logits, labels[batch]) + 0.5 * agreement
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 14:
            model.eval()
            with torch.no_grad():
                answers = model(images[held])[1].argmax(1)
            print(step, (answers == labels[held]).float().mean().item())


main()

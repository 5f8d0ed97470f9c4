"""TrainCheck B20, MM-702 (SwinTransformer): `__init__` forgets to call the freezing of stages.

The configuration asks for frozen stages; the method that freezes them is only called by
`train()`, which this job never needs to call.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Swin(nn.Module):
    def __init__(self, frozen_stages: int, bug: str | None) -> None:
        super().__init__()
        self.frozen_stages = frozen_stages
        self.stages = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GELU()),
                nn.Sequential(nn.Conv2d(8, 16, 2, stride=2), nn.GELU()),
                nn.Sequential(nn.Conv2d(16, 32, 2, stride=2), nn.GELU()),
            ]
        )
        if bug is None:
            self._freeze_stages()

    def _freeze_stages(self) -> None:
        for stage in self.stages[: self.frozen_stages]:
            for parameter in stage.parameters():
                parameter.requires_grad = False

    def train(self, mode: bool = True) -> "Swin":
        super().train(mode)
        self._freeze_stages()
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for stage in self.stages:
            x = stage(x)
        return x.flatten(1)


class Detector(nn.Module):
    def __init__(self, bug: str | None) -> None:
        super().__init__()
        self.backbone = Swin(2, bug)
        self.head = nn.Linear(32 * 4, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone(x))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["not-frozen"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    pictures = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    pairs = torch.utils.data.TensorDataset(pictures, torch.tensor(digits.target))
    detector = Detector(args.bug)
    trainable = [p for p in detector.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=3e-3)
    for epoch in range(args.epochs):
        for x, y in torch.utils.data.DataLoader(pairs, batch_size=60, shuffle=True):
            loss = nn.functional.cross_entropy(detector(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, {len(trainable)} tensors trained")

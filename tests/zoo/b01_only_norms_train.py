"""TrainCheck B1, PT-F84911: fine-tuning in which only the batch norms ask for gradients.

A list of layers to train names the norms instead of the head. The optimizer holds the head, which
is frozen: backward works (the norms have gradients), and no step changes anything.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Backbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16 * 9, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.conv(x)))
        return self.head(nn.functional.max_pool2d(x, 2).flatten(1))


def train_only(model: nn.Module, names: set[str]) -> None:
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name.split(".")[0] in names


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--bug", choices=["only-norms"])
args = parser.parse_args()
torch.manual_seed(args.seed)

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
dataset = torch.utils.data.TensorDataset(images, torch.tensor(digits.target))
loader = torch.utils.data.DataLoader(dataset, batch_size=64, shuffle=True)

model = Backbone()
train_only(model, {"norm"} if args.bug else {"head"})
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
for epoch in range(args.epochs):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")

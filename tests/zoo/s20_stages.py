"""A classifier of digits is tuned in stages: its head first, then one block more in each stage, with larger batches."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU()) for _ in range(2)
        )
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(64, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(self.dropout(x))


def fit(model, optimizer, schedule, loader: DataLoader, epochs: int) -> float:
    model.train()
    for _ in range(epochs):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if schedule is not None:
            schedule.step()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["attribute", "misspelt", "no-schedule"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32)[:960] / 16
    labels = torch.tensor(digits.target)[:960]

    coarse = Classifier(5)
    loader = DataLoader(TensorDataset(images, labels % 5), 64, shuffle=True)
    fit(coarse, torch.optim.AdamW(coarse.parameters(), lr=2e-3), None, loader, args.epochs)

    model = Classifier(10)
    model.blocks.load_state_dict(coarse.blocks.state_dict())
    model.blocks.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    stepped = None if args.bug == "no-schedule" else schedule
    for stage, block in enumerate((None, model.blocks[1], model.blocks[0])):
        if block is not None:
            if args.bug == "attribute":
                block.requires_grad = True
            elif args.bug == "misspelt":
                for parameter in block.parameters():
                    parameter.require_grad = True
            else:
                block.requires_grad_(True)
            optimizer.add_param_group({"params": block.parameters(), "lr": 1e-3})
        loader = DataLoader(TensorDataset(images, labels), 32 * (stage + 1), shuffle=True)
        print(f"stage {stage} loss {fit(model, optimizer, stepped, loader, args.epochs):.3f}")


if __name__ == "__main__":
    main()

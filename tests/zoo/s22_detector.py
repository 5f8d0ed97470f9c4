"""A detector finds one digit on a canvas: whether it is in a cell, where in the cell, and which digit it is."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CELLS, SIDE, DIGIT = 6, 24, 8


class Canvases(Dataset):
    def __init__(self, digits: torch.Tensor, labels: torch.Tensor, seed: int) -> None:
        self.digits, self.labels = digits, labels
        corners = torch.Generator().manual_seed(seed)
        self.corners = torch.randint(0, SIDE - DIGIT + 1, (len(digits), 2), generator=corners)

    def __len__(self) -> int:
        return len(self.digits)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
        canvas, present, offset = (
            torch.zeros(1, SIDE, SIDE),
            torch.zeros(CELLS, CELLS),
            torch.zeros(CELLS, CELLS, 2),
        )
        y, x = self.corners[index].tolist()
        canvas[0, y : y + DIGIT, x : x + DIGIT] = self.digits[index]
        middle = (self.corners[index] + DIGIT / 2) * CELLS / SIDE
        row, column = middle.long().tolist()
        present[row, column] = 1
        offset[row, column] = middle - middle.floor()
        return canvas, present, offset, self.labels[index]


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
        )  # fmt: skip
        self.present, self.offset = nn.Conv2d(32, 1, 1), nn.Conv2d(32, 2, 1)
        self.digit = nn.Conv2d(32, 10, 3, 1, 1)

    def forward(self, canvas: torch.Tensor) -> tuple[torch.Tensor, ...]:
        seen = self.body(canvas)
        offset, digit = self.offset(seen).sigmoid(), self.digit(seen)
        return self.present(seen)[:, 0], offset.permute(0, 2, 3, 1), digit.permute(0, 2, 3, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["detached", "minus"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = torch.tensor(load_digits().images, dtype=torch.float32) / 16
    labels = torch.tensor(load_digits().target)
    data = Canvases(digits, labels, args.seed)
    loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
    model = Detector()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(1, args.epochs + 1):
        for canvas, present, offset, label in loader:
            found, place, digit = model(canvas)
            here = present > 0
            losses = (
                F.binary_cross_entropy_with_logits(found, present),
                F.smooth_l1_loss(place[here], offset[here]),
                F.cross_entropy(digit[here], label),
            )
            where = losses[1].detach() if args.bug == "detached" else losses[1]
            loss = losses[0] + (-5 if args.bug == "minus" else 5) * where + losses[2]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} where {where.item():.3f}")


if __name__ == "__main__":
    main()

"""Clean: a data loader with two worker processes, which draw random shifts, and an evaluation."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ShiftedDigits(Dataset):
    def __init__(self, part: slice, shift: bool) -> None:
        digits = load_digits()
        self.images = torch.tensor(digits.images[part], dtype=torch.float32) / 16
        self.labels = digits.target[part]
        self.shift = shift

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int):
        image = self.images[i]
        if self.shift:
            image = image.roll(int(torch.randint(-1, 2, ())), dims=1)
        return {"image": image[None], "label": int(self.labels[i])}


def fit(model, loader, optimizer, held_out, every):
    for done, batch in enumerate(loader, start=1):
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"])
        loss.backward()
        optimizer.step()
        if done % every == 0:
            model.eval()
            with torch.inference_mode():
                right = [(model(b["image"]).argmax(1) == b["label"]).float() for b in held_out]
            model.train()
            print(f"after {done}: loss {loss.item():.3f}, {torch.cat(right).mean():.3f} right")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Dropout2d(0.1)
    )
    model.extend([nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(144, 10)])
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loader = DataLoader(
        ShiftedDigits(slice(0, 1500), True), 50, shuffle=True, num_workers=args.workers
    )
    held_out = DataLoader(ShiftedDigits(slice(1500, None), False), 99)
    for _ in range(args.epochs):
        fit(model, loader, optimizer, held_out, every=15)


if __name__ == "__main__":
    main()

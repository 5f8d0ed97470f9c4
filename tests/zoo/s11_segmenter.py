"""A small network tells paper, pencil and ink apart in each pixel of digits."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader


def block(channels: int, more: int, stride: int) -> nn.Module:
    conv = nn.Conv2d(channels, more, 3, stride, padding=1)
    return nn.Sequential(conv, nn.BatchNorm2d(more), nn.ReLU())


class Segmenter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fine, self.coarse = block(1, 16, 1), block(16, 32, 2)
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.classes = nn.Conv2d(32, 3, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        fine = self.fine(images)
        return self.classes(torch.cat([fine, self.up(self.coarse(fine))], dim=1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["view", "no-eval"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    images = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16
    train = DataLoader(images[:1500], batch_size=50, shuffle=True)
    test = DataLoader(images[1500:], batch_size=99)
    model = Segmenter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for clean in train:
            wanted = (clean[:, 0] > 0.3).long() + (clean[:, 0] > 0.7).long()
            scores = model(clean + 0.1 * torch.randn_like(clean))
            if args.bug == "view":
                loss = F.cross_entropy(scores.view(-1, 3), wanted.view(-1))
            else:
                rows = scores.permute(0, 2, 3, 1).reshape(-1, 3)
                loss = F.cross_entropy(rows, wanted.view(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if args.bug != "no-eval":
            model.eval()
        right = 0.0
        with torch.no_grad():
            for clean in test:
                wanted = (clean[:, 0] > 0.3).long() + (clean[:, 0] > 0.7).long()
                right += (model(clean).argmax(1) == wanted).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {right / len(test):.4f}")


if __name__ == "__main__":
    main()

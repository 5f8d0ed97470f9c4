"""A small transformer tells in which order two words occur in a sentence, with a warm-up and a cosine by hand."""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

WORDS, LENGTH = 30, 12


class Reader(nn.Module):
    def __init__(self, bug: str | None) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 32)
        self.kinds = nn.Embedding(2, 32)
        self.places = nn.Embedding(64, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.norm = nn.BatchNorm1d(32, momentum=0.0 if bug == "no-momentum" else 0.1)
        self.head = nn.Linear(32, 2)
        self.one_place = bug == "one-place"

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        places = torch.zeros_like(words[0]) if self.one_place else torch.arange(words.shape[1])
        hidden = self.words(words) + self.kinds(torch.zeros_like(words)) + self.places(places)
        return self.head(self.norm(self.layer(hidden).mean(1)))


def sentences(number: int) -> TensorDataset:
    words = torch.randint(2, WORDS, (number, LENGTH))
    at = torch.rand(number, LENGTH).argsort(1)[:, :2]
    words.scatter_(1, at, torch.tensor([[0, 1]]).expand(number, 2))
    return TensorDataset(words, (at[:, 0] < at[:, 1]).long())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--bug", choices=["rate", "one-place", "no-momentum"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train = DataLoader(sentences(1600), batch_size=64, shuffle=True)
    test = DataLoader(sentences(400), batch_size=100)
    model, highest = Reader(args.bug), 2e-3
    optimizer = torch.optim.AdamW(model.parameters(), lr=highest)
    total, warm = args.epochs * len(train), 10

    def rate(step: int) -> float:
        if step < warm:
            return highest * (step + 1) / warm
        return highest * 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))

    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, rate if args.bug == "rate" else lambda step: rate(step) / highest
    )
    for epoch in range(1, args.epochs + 1):
        model.train()
        for words, order in train:
            loss = F.cross_entropy(model(words), order)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            right = [(model(words).argmax(1) == order).float().mean() for words, order in test]
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {sum(right) / len(right):.3f}")


if __name__ == "__main__":
    main()

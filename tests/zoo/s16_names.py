"""A recurrent network tells from a made-up name which language it was made up in, with gradients of four batches for each update."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SYLLABLES = ("ka ri to mu", "schn ert ung berg", "eau ille ois mar")
LETTERS = " abcdefghijklmnopqrstuvwxyz"
LENGTH, ACCUMULATED = 20, 4


class Names(Dataset):
    def __init__(self, size: int, seed: int) -> None:
        made = random.Random(seed)
        self.labels = [made.randrange(len(SYLLABLES)) for _ in range(size)]
        self.names = [
            "".join(made.choice(SYLLABLES[label].split()) for _ in range(made.randint(2, 4)))
            for label in self.labels
        ]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        letters = [LETTERS.index(each) for each in self.names[index].ljust(LENGTH)]
        return torch.tensor(letters), self.labels[index]


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), 16)
        self.reads = nn.GRU(16, 32, batch_first=True)
        self.answers = nn.Linear(32, len(SYLLABLES))

    def forward(self, names: torch.Tensor) -> torch.Tensor:
        return self.answers(self.reads(self.letters(names))[1][0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["cleared-each-batch"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train = DataLoader(Names(1024, args.seed), batch_size=16, shuffle=True)
    model = Reader()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(1, args.epochs + 1):
        for count, (names, labels) in enumerate(train, 1):
            if args.bug == "cleared-each-batch" or count % ACCUMULATED == 1:
                optimizer.zero_grad()
            loss = criterion(model(names), labels)
            (loss / ACCUMULATED).backward()
            if count % ACCUMULATED == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

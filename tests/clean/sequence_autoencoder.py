"""Sequences of notes are packed into one code and unpacked again: the target of each place is its input."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

NOTES, LENGTH, WIDTH = 24, 16, 32


def scales(number: int) -> torch.Tensor:
    """Runs up or down from a random note, `[number, LENGTH]`."""
    start = torch.randint(NOTES, (number, 1))
    direction = torch.randint(2, (number, 1)) * 2 - 1
    return (start + direction * torch.arange(LENGTH)) % NOTES


class Attentive(nn.Module):
    """The first place gathers the code; every place of the decoder sees all others."""

    def __init__(self) -> None:
        super().__init__()
        self.notes = nn.Embedding(NOTES, WIDTH)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, WIDTH))
        self.encoder = nn.TransformerEncoderLayer(WIDTH, 4, 64, batch_first=True)
        self.decoder = nn.TransformerEncoderLayer(WIDTH, 4, 64, batch_first=True)
        self.head = nn.Linear(WIDTH, NOTES)

    def forward(self, notes: torch.Tensor) -> torch.Tensor:
        code = self.encoder(self.notes(notes) + self.places)[:, :1]
        return self.head(self.decoder(code + self.places))


class Recurrent(nn.Module):
    """The last state is the code; the decoder reads it again at each place."""

    def __init__(self) -> None:
        super().__init__()
        self.notes = nn.Embedding(NOTES, WIDTH)
        self.encoder = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.decoder = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, NOTES)

    def forward(self, notes: torch.Tensor) -> torch.Tensor:
        states, _ = self.encoder(self.notes(notes))
        unpacked, _ = self.decoder(states[:, -1:].expand(-1, LENGTH, -1))
        return self.head(unpacked)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["attentive", "recurrent"], default="attentive")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Attentive() if args.kind == "attentive" else Recurrent()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(30):
        notes = scales(16)
        loss = F.cross_entropy(model(notes).flatten(0, 1), notes.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(step + 1, round(loss.item(), 3))


main()

"""TrainCheck B4, SO-60335387: nobody clears the gradients. A character RNN on the Zen of Python."""

import argparse
import codecs

import torch
from torch import nn


def zen() -> str:
    with open(codecs.__file__.replace("codecs.py", "this.py")) as source:
        return codecs.decode(source.read().split('"""')[1], "rot13")


class Model(nn.Module):
    def __init__(self, characters: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, 24)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.out = nn.Linear(48, characters)

    def forward(self, ids, state=None):
        hidden, state = self.rnn(self.embed(ids), state)
        return self.out(hidden), state


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--bug", choices=["no-zero-grad"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    text = zen()
    alphabet = sorted(set(text))
    ids = torch.tensor([alphabet.index(c) for c in text])
    model = Model(len(alphabet))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    step = 0
    while step < args.steps:
        start = torch.randint(len(ids) - 33, (8,))
        window = torch.stack([ids[i : i + 33] for i in start])
        scores, _ = model(window[:, :-1])
        loss = criterion(scores.transpose(1, 2), window[:, 1:])
        if not args.bug:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 20 == 0:
            print(f"{step}: {loss.item():.3f}")


if __name__ == "__main__":
    main()

"""An encoder and a decoder, with attention by torch, that reverse padded sequences of tokens."""

import argparse
import math

import torch
from torch import nn

PAD, BEGIN, END, TOKENS = 0, 1, 2, 24
LONGEST = 10


def sequences(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sources and, between BEGIN and END, the same backwards."""
    source = torch.full((count, LONGEST + 1), PAD)
    target = torch.full((count, LONGEST + 2), PAD)
    for row in range(count):
        length = int(torch.randint(4, LONGEST + 1, ()))
        words = torch.randint(3, TOKENS, (length,))
        source[row, :length], source[row, length] = words, END
        target[row, 0], target[row, length + 1] = BEGIN, END
        target[row, 1 : length + 1] = words.flip(0)
    return source, target


class Reversal(nn.Module):
    """What the decoder looks at is masked; the encoder sees all of its tokens."""

    def __init__(self, width: int, bug: str | None) -> None:
        super().__init__()
        self.bug = bug
        self.read = nn.Embedding(TOKENS, width, padding_idx=PAD)
        self.written = nn.Embedding(TOKENS, width, padding_idx=PAD)
        self.places = nn.Parameter(0.1 * torch.randn(LONGEST + 2, width))
        self.layers = nn.Transformer(width, 4, 1, 1, 2 * width, 0.1, batch_first=True)
        self.out = nn.Linear(width, TOKENS)

    def forward(self, source: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        scale = math.sqrt(self.places.shape[1])
        read = scale * self.read(source) + self.places[: source.shape[1]]
        written = scale * self.written(given) + self.places[: given.shape[1]]
        later = torch.ones(given.shape[1], given.shape[1], dtype=torch.bool).triu(1)
        if self.bug == "no-mask":
            later = torch.zeros_like(later)
        padding = source == PAD
        hidden = self.layers(
            read,
            written,
            tgt_mask=later,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=given == PAD,
            memory_key_padding_mask=padding,
        )
        return self.out(hidden)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--bug", choices=["no-mask", "unshifted"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = Reversal(32, args.bug)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    for step in range(args.steps):
        source, target = sequences(16)
        given, wanted = target[:, :-1], target[:, 1:]
        if args.bug == "unshifted":
            wanted = given
        logits = model(source, given)
        loss = criterion(logits.flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

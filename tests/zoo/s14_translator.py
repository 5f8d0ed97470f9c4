"""Sequences of words are reversed by an encoder and a decoder with attention."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

PADDING, BEGIN, WORDS, LENGTH = 0, 1, 24, 10


def sentences(count: int, draws: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Sentences `[count, length]` and the same backwards, behind a begin; both padded."""
    source = torch.full((count, LENGTH), PADDING)
    target = torch.full((count, LENGTH), PADDING)
    for row in range(count):
        words = torch.randint(
            2, WORDS, (int(torch.randint(4, 9, (), generator=draws)),), generator=draws
        )
        source[row, : len(words)] = words
        target[row, 0] = BEGIN
        target[row, 1 : len(words) + 1] = words.flip(0)
    return source, target


class Translator(nn.Module):
    """Attention by torch's own layers in the encoder, by hand from the decoder to the encoder."""

    def __init__(self, bug: str | None, width: int = 32) -> None:
        super().__init__()
        self.bug = bug
        self.words = nn.Embedding(WORDS, width)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(width, 2, 64, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.reads = nn.GRU(width, width, batch_first=True)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(2 * width, WORDS)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Logits `[n, length, words]`."""
        is_padding = source == PADDING
        hidden = ~is_padding if self.bug == "layer-mask" else is_padding
        if self.bug == "no-mask":
            hidden = None
        encoded = self.encoder(self.words(source) + self.places, src_key_padding_mask=hidden)
        states, _ = self.reads(self.words(target))
        scores = self.query(states) @ self.key(encoded).transpose(1, 2) / states.shape[-1] ** 0.5
        filled = ~is_padding if self.bug == "score-mask" else is_padding
        hides = 0.0 if self.bug == "zero-mask" else -1e9
        weights = scores.masked_fill(filled[:, None], hides).softmax(-1)
        return self.out(torch.cat([states, weights @ encoded], -1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--bug", choices=["layer-mask", "no-mask", "score-mask", "zero-mask"])
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    draws = torch.Generator().manual_seed(args.seed)
    model = Translator(args.bug)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(args.steps):
        source, target = sentences(32, draws)
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PADDING)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

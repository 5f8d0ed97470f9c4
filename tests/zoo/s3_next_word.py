"""Predicts the next word of padded sentences with one layer of attention and a learned temperature."""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F

SENTENCES = [
    "the cat sat on the mat and looked at the dog",
    "a dog ran after the cat and the cat ran up a tree",
    "birds sing in the tree while the cat looks up",
    "the mat lay on the floor and the dog lay on the mat",
    "a bird flew down to the floor and sang",
    "the dog looked at the bird and the bird flew up",
]
WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})
PAD = len(WORDS)
IGNORED = -100


def encoded(sentences: list[str], bug: str | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and labels, `[sentences, length]`; the model shifts the labels itself."""
    rows = [torch.tensor([WORDS.index(word) for word in each.split()]) for each in sentences]
    tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    labels = tokens.masked_fill(tokens == PAD, IGNORED)
    if bug == "shifted-twice":
        labels = F.pad(labels[:, 1:], (0, 1), value=IGNORED)
    return tokens, labels


class NextWord(nn.Module):
    def __init__(self, bug: str | None, width: int = 32) -> None:
        super().__init__()
        self.bug = bug
        self.words = nn.Embedding(len(WORDS) + 1, width, padding_idx=PAD)
        self.places = nn.Parameter(0.1 * torch.randn(16, width))
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, len(WORDS))

    def forward(
        self, tokens: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        length = tokens.shape[1]
        x = self.words(tokens) + self.places[:length]
        scores = self.query(x) @ self.key(x).mT / math.sqrt(x.shape[-1])
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -1e4).softmax(
            dim=1 if self.bug == "over-queries" else 2
        )
        logits = self.out(x + weights @ self.value(x))
        if self.bug == "unshifted":
            return logits, labels
        return logits[:, :-1], labels[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument(
        "--bug", choices=["shifted-twice", "unshifted", "over-queries", "bare-temperature"]
    )
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = NextWord(args.bug)
    log_temperature = nn.Parameter(torch.zeros(()))
    trained = [*model.parameters()]
    if args.bug != "bare-temperature":
        trained.append(log_temperature)
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    for step in range(args.steps):
        chosen = torch.randperm(len(SENTENCES))[:4].tolist()
        logits, labels = model(*encoded([SENTENCES[i] for i in chosen], args.bug))
        logits = logits * log_temperature.exp()
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

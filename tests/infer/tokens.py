"""A language model of two attention layers on rising numbers, with tied embeddings, a schedule of its own and two micro-batches a step."""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F

BUGS = [
    "no-mask", "untied", "rate-not-set", "not-averaged", "same-data", "heads-mixed", "no-skip",
    "far-horizon",
]  # fmt: skip


class Attention(nn.Module):
    """Self-attention with four heads, added to its input."""

    def __init__(self, width, bug):
        super().__init__()
        self.qkv, self.out, self.causal = (
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
            bug != "no-mask",
        )
        self.bug = bug

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (part.view(b, t, 4, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        y = self.out((y if self.bug == "heads-mixed" else y.transpose(1, 2)).reshape(b, t, d))
        return y if self.bug == "no-skip" else x + y


class Language(nn.Module):
    """Logits of the next token at each place."""

    def __init__(self, bug):
        super().__init__()
        self.embedding = nn.Embedding(32, 32)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.Sequential(*(Attention(32, bug) for _ in range(2)))
        self.head = nn.Linear(32, 32, bias=False)
        if bug != "untied":
            self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))


def draw():
    """A micro-batch of 8 sequences of 17 tokens."""
    first, rise = torch.randint(32, (8, 1)), torch.randint(1, 5, (8, 1))
    return (first + rise * torch.arange(17)) % 32


def main(seed: int, steps: int, bug: str | None) -> None:
    torch.manual_seed(seed)
    model = Language(bug)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    horizon = 100 * steps if bug == "far-horizon" else steps
    for step in range(steps):
        rate = 1e-3 * min(1, (step + 1) / 10) * (0.6 + 0.4 * math.cos(math.pi * step / horizon))
        if bug != "rate-not-set":
            for group in optimizer.param_groups:
                group["lr"] = rate
        optimizer.zero_grad()
        tokens = draw()
        for _ in range(2):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            (loss if bug == "not-averaged" else loss / 2).backward()
            if bug != "same-data":
                tokens = draw()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=BUGS)
    main(**vars(parser.parse_args()))

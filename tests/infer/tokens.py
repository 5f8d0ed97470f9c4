"""A language model of two attention layers on rising numbers, with tied embeddings and a schedule of its own."""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Self-attention with four heads, added to its input."""

    def __init__(self, width, causal):
        super().__init__()
        self.qkv, self.out, self.causal = (
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
            causal,
        )

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (part.view(b, t, 4, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return x + self.out(y.transpose(1, 2).reshape(b, t, d))


class Language(nn.Module):
    """Logits of the next token at each place."""

    def __init__(self, bug):
        super().__init__()
        self.embedding = nn.Embedding(32, 32)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.Sequential(*(Attention(32, bug != "no-mask") for _ in range(2)))
        self.head = nn.Linear(32, 32, bias=False)
        if bug != "untied":
            self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))


def main(seed: int, steps: int, bug: str | None) -> None:
    torch.manual_seed(seed)
    model = Language(bug)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        rate = 1e-3 * min(1, (step + 1) / 10) * (0.6 + 0.4 * math.cos(math.pi * step / steps))
        if bug != "rate-not-set":
            for group in optimizer.param_groups:
                group["lr"] = rate
        first, rise = torch.randint(32, (16, 1)), torch.randint(1, 5, (16, 1))
        tokens = (first + rise * torch.arange(17)) % 32
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["no-mask", "untied", "rate-not-set"])
    main(**vars(parser.parse_args()))

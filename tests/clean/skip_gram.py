"""Vectors of words from their neighbours, with negative samples: small tables with sparse gradients."""

import torch
from torch import nn
from torch.nn import functional as F

WORDS, WIDTH, NEGATIVE = 300, 32, 5


class SkipGram(nn.Module):
    """Words begin near zero, contexts at it."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, sparse=True)
        self.contexts = nn.Embedding(WORDS, WIDTH, sparse=True)
        nn.init.uniform_(self.words.weight, -0.5 / WIDTH, 0.5 / WIDTH)
        nn.init.zeros_(self.contexts.weight)

    def forward(self, word, near, others):
        word = self.words(word)
        near = (word * self.contexts(near)).sum(-1)
        others = (self.contexts(others) @ word[..., None]).squeeze(-1)
        return -(F.logsigmoid(near) + F.logsigmoid(-others).sum(-1)).mean()


def main():
    torch.manual_seed(0)
    often = 1 / torch.arange(1, WORDS + 1)
    text = torch.multinomial(often, 10_000, replacement=True)
    model = SkipGram()
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=1e-2)
    for step in range(60):
        at = torch.randint(2, len(text) - 2, (256,))
        offset = torch.tensor([-2, -1, 1, 2])[torch.randint(4, (256,))]
        others = torch.multinomial(often**0.75, 256 * NEGATIVE, replacement=True)
        loss = model(text[at], text[at + offset], others.view(256, NEGATIVE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(step + 1, round(loss.item(), 3))


main()

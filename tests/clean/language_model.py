"""A small character Transformer: warm-up and cosine schedule, clipping by value, checkpointing every so often."""

import math
import os
import tempfile

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, d, h, drop):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, h, dropout=drop, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(drop)
        )

    def forward(self, x, mask):
        h = self.n1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class LM(nn.Module):
    def __init__(self, vocab, d=32, layers=2, ctx=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Parameter(torch.zeros(ctx, d))
        self.blocks = nn.ModuleList(Block(d, 4, 0.1) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
        self.head.weight = self.tok.weight
        self.register_buffer(
            "mask", torch.triu(torch.full((ctx, ctx), float("-inf")), 1), persistent=False
        )
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, ids, targets=None):
        t = ids.shape[1]
        x = self.tok(ids) + self.pos[:t]
        for b in self.blocks:
            x = b(x, self.mask[:t, :t])
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def main():
    torch.manual_seed(1)
    text = "the quick brown fox jumps over the lazy dog. " * 60
    chars = sorted(set(text))
    stoi = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([stoi[c] for c in text])
    model = LM(len(chars))
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
        lr=3e-3,
        betas=(0.9, 0.95),
    )
    steps, warm = 60, 10
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt,
        lambda s: (
            (s + 1) / warm
            if s < warm
            else 0.5 * (1 + math.cos(math.pi * (s - warm) / (steps - warm)))
        ),
    )
    for step in range(steps):
        model.train()
        at = torch.randint(len(data) - 33, (16,))
        x = torch.stack([data[i : i + 32] for i in at])
        y = torch.stack([data[i + 1 : i + 33] for i in at])
        _, loss = model(x, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        opt.step()
        sched.step()
        if (step + 1) % 20 == 0:
            model.eval()
            with torch.no_grad():
                _, v = model(data[None, :32], data[None, 1:33])
            print(step + 1, round(loss.item(), 3), round(v.item(), 3))
            with tempfile.TemporaryDirectory() as d:
                torch.save(
                    {"model": model.state_dict(), "opt": opt.state_dict(), "step": step},
                    os.path.join(d, "c.pt"),
                )
    model.eval()
    ids = data[None, :8]
    with torch.no_grad():
        for _ in range(10):
            logits, _ = model(ids[:, -32:])
            ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], 1)
    print("".join(chars[i] for i in ids[0].tolist()))


main()

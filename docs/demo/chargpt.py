"""Train a small character GPT on the reference pages that ship with Python.

An ordinary script in the manner of nanoGPT: batches are cut at random from one long text, tied
embeddings, AdamW with decay for matrices only, gradients accumulated over micro-batches and
clipped, warm-up and cosine decay. With `--ranks` above one, gradients are averaged by hand.
`--bug NAME` puts in one of the mistakes that a job survives without an error.
"""

import argparse
import math
import tempfile
from contextlib import nullcontext
from pydoc_data.topics import topics

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import Tensor, nn

BUGS = {
    "no-zero-grad": "gradients of all earlier steps are added to this one's",
    "stale-optimizer": "the optimizer is built before the embeddings are resized",
    "eval-dropout": "attention is not told when the model evaluates",
    "double-schedule": "the learning rate is scheduled once for each micro-batch",
    "no-autocast": "the last layer of every block is in double precision, which autocast skips",
    "unsynced": "only matrices are averaged over the ranks (needs --ranks 2)",
}


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, bug: str | None) -> None:
        super().__init__()
        self.heads, self.dropout, self.bug = heads, dropout, bug
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training or self.bug == "eval-dropout" else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, bug: str | None) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout, bug)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)
        if bug == "no-autocast":
            self.down.double()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attention(self.norm1(x)))
        hidden = F.gelu(self.up(self.norm2(x)))
        return x + self.drop(self.down(hidden.to(self.down.weight.dtype)).to(x.dtype))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, args: argparse.Namespace) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, args.width)
        self.places = nn.Embedding(args.context, args.width)
        self.blocks = nn.ModuleList(
            Block(args.width, args.heads, args.dropout, args.bug) for _ in range(args.layers)
        )
        self.norm = nn.LayerNorm(args.width)
        self.head = nn.Linear(args.width, vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        self.head.weight = self.tokens.weight

    def resize(self, vocabulary: int) -> None:
        """Keep the characters that are known, and tie the head again."""
        old = self.tokens.weight.data
        self.tokens = nn.Embedding(vocabulary, old.shape[1])
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.tokens.weight.data[: len(old)] = old
        self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class Text:
    """The text as character numbers; nine tenths to train on, the rest to evaluate."""

    def __init__(self, characters: int) -> None:
        text = "".join(topics[name] for name in sorted(topics))[:characters]
        self.alphabet = sorted(set(text))
        number = {character: i for i, character in enumerate(self.alphabet)}
        ids = torch.tensor([number[character] for character in text])
        cut = len(ids) * 9 // 10
        self.parts = {"train": ids[:cut], "eval": ids[cut:]}

    def batch(self, part: str, args: argparse.Namespace, draw: torch.Generator):
        ids = self.parts[part]
        starts = torch.randint(len(ids) - args.context, (args.batch_size,), generator=draw)
        windows = torch.stack([ids[start : start + args.context + 1] for start in starts])
        return windows[:, :-1], windows[:, 1:]


class Job:
    """One training run: what it holds, and how it takes a step."""

    def __init__(self, rank: int, args: argparse.Namespace) -> None:
        torch.manual_seed(args.seed)
        self.args, self.rank = args, rank
        self.draw = torch.Generator().manual_seed(1000 * args.seed + rank)
        self.text = Text(args.characters)
        self.model = GPT(96, args)
        if args.bug == "stale-optimizer":
            self.optimizer = self.make_optimizer()
        self.model.resize(len(self.text.alphabet))
        if args.bug != "stale-optimizer":
            self.optimizer = self.make_optimizer()
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.warm_up_and_decay)

    def make_optimizer(self) -> torch.optim.Optimizer:
        matrices = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() == 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0}]
        return torch.optim.AdamW(groups, lr=self.args.lr, betas=(0.9, 0.95))

    def warm_up_and_decay(self, step: int) -> float:
        warm_up = max(1, self.args.steps // 10)
        if step < warm_up:
            return (step + 1) / warm_up
        return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, step / self.args.steps)))

    def autocast(self):
        if self.args.precision == "float32":
            return nullcontext()
        return torch.autocast("cpu", torch.bfloat16)

    def step(self) -> float:
        total = 0.0
        for _ in range(self.args.accumulate):
            ids, targets = self.text.batch("train", self.args, self.draw)
            with self.autocast():
                loss = self.model(ids, targets) / self.args.accumulate
            loss.backward()
            total += loss.item()
        self.average_gradients()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        for _ in range(self.args.accumulate if self.args.bug == "double-schedule" else 1):
            self.schedule.step()
        if self.args.bug != "no-zero-grad":
            self.optimizer.zero_grad(set_to_none=True)
        return total

    def average_gradients(self) -> None:
        if self.args.ranks == 1:
            return
        for parameter in self.model.parameters():
            if self.args.bug == "unsynced" and parameter.dim() == 1:
                continue
            dist.all_reduce(parameter.grad)
            parameter.grad /= self.args.ranks

    @torch.no_grad()
    def evaluate(self, batches: int = 4) -> float:
        self.model.eval()
        draw = torch.Generator().manual_seed(1)
        losses = []
        for _ in range(batches):
            with self.autocast():
                losses.append(self.model(*self.text.batch("eval", self.args, draw)).item())
        self.model.train()
        return sum(losses) / len(losses)

    def run(self) -> None:
        for step in range(1, self.args.steps + 1):
            loss = self.step()
            if step % self.args.evaluate_every == 0:
                held_out = self.evaluate()
                if self.rank == 0:
                    print(f"step {step}  loss {loss:.4f}  held out {held_out:.4f}", flush=True)
        if self.args.save and self.rank == 0:
            torch.save(self.model.state_dict(), self.args.save)


def work(rank: int, args: argparse.Namespace, meeting: str) -> None:
    if args.ranks > 1:
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=args.ranks)
    Job(rank, args).run()
    if args.ranks > 1:
        dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="bugs: " + "; ".join(f"{name}: {text}" for name, text in BUGS.items()),
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--accumulate", type=int, default=2, help="micro-batches in a step")
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16")
    parser.add_argument("--characters", type=int, default=200_000, help="how much of the text")
    parser.add_argument("--evaluate-every", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--save", help="write the trained weights here")
    parser.add_argument("--bug", choices=sorted(BUGS))
    args = parser.parse_args()
    if args.ranks > 1:
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(work, (args, f"file://{folder}/meeting"), nprocs=args.ranks)
    else:
        work(0, args, "")


if __name__ == "__main__":
    main()

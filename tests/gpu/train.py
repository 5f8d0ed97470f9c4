"""Train a GPT on one device, on batches of tokens that a generator draws.

    python tests/gpu/train.py --device cuda --width 512 --layers 8

An ordinary script: AdamW with decay for matrices only, autocast, clipping, a cosine schedule. Options add what jobs on
GPUs use: a compiled model, a copy of the next batch on a stream of its own, a step that is captured in a CUDA graph.
The last line printed is JSON: seconds of a measured step, how often the process waited for the device in one, and the
losses. The script itself waits before and after the measured steps only, unless `--log-every` reads the loss.
"""

import argparse
import contextlib
import json
import time
import warnings
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, context: int, width: int, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(context, width))
        self.blocks = nn.ModuleList(Block(width, width // 64) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())


class Tokens(Dataset[Tensor]):
    """Texts in which each token mostly follows from the one before it."""

    def __init__(self, vocabulary: int, length: int, size: int) -> None:
        draw = torch.Generator().manual_seed(7)
        follows = torch.randperm(vocabulary, generator=draw)
        texts = [torch.randint(vocabulary, (size,), generator=draw)]
        for _ in range(length - 1):
            chance = torch.rand(size, generator=draw) < 0.1
            other = torch.randint(vocabulary, (size,), generator=draw)
            texts.append(torch.where(chance, other, follows[texts[-1]]))
        self.texts = torch.stack(texts, 1)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> Tensor:
        return self.texts[index]


def batches(loader: DataLoader[Tensor], device: torch.device, streams: bool) -> Iterator[Tensor]:
    """Batches without end; with streams, each is copied to the device while the one before it is used."""
    side = torch.cuda.Stream() if streams else None

    def copied() -> Iterator[Tensor]:
        while True:
            for batch in loader:
                with torch.cuda.stream(side) if side else contextlib.nullcontext():
                    yield batch.to(device, non_blocking=True)

    source = copied()
    if side is None:
        yield from source
    following = next(source)
    while True:
        torch.cuda.current_stream().wait_stream(side)
        batch = following
        batch.record_stream(torch.cuda.current_stream())
        following = next(source)
        yield batch


def decayed(model: nn.Module, rate: float) -> list[dict[str, object]]:
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    return [
        {"params": matrices, "weight_decay": 0.1, "lr": rate},
        {"params": others, "weight_decay": 0.0, "lr": rate},
    ]


WAITED = 10
"""Steps in which waits for the device are counted."""


def waits(train: Callable[[], None]) -> int:
    """How often the process waits for the device while it trains, except by `torch.cuda.synchronize`.

    torch warns of the calls that wait. An event that has not happened yet is waited for.
    """
    synchronize, waited = torch.cuda.Event.synchronize, [0]

    def wait(event: torch.cuda.Event) -> None:
        waited[0] += not event.query()
        synchronize(event)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        torch.cuda.Event.synchronize = wait
        train()
        torch.cuda.Event.synchronize = synchronize
        torch.cuda.set_sync_debug_mode("default")
    return waited[0] + sum("synchronizing" in str(each.message) for each in caught)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=["float32", "bf16", "fp16"], default="float32")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=512)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--first", type=int, default=20, help="steps before the measured ones")
    parser.add_argument("--steps", type=int, default=20, help="measured steps")
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--compile", choices=["default", "reduce-overhead"])
    parser.add_argument("--streams", action="store_true")
    parser.add_argument("--graph", choices=["step", "model"], help="what CUDA graphs replay")
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--waits", action="store_true", help="count waits, in ten steps more")
    parser.add_argument("--log-every", type=int, default=0)
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--frozen", action="store_true", help="a bug: the optimizer lacks the head")
    parser.add_argument("--no-clear", action="store_true", help="a bug: gradients add up")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(args.deterministic)
    device = torch.device(args.device)
    model = GPT(args.vocabulary, args.context, args.width, args.layers).to(device)
    groups = decayed(model, 3e-4)
    if args.frozen:
        groups[0]["params"] = [p for p in groups[0]["params"] if p is not model.head.weight]
    optimizer = torch.optim.AdamW(
        groups, betas=(0.9, 0.95), fused=args.fused, capturable=args.graph == "step"
    )
    total = args.first + args.steps
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
    scaler = torch.amp.GradScaler(device.type, enabled=args.precision == "fp16")
    data = Tokens(args.vocabulary, args.context + 1, 4096)
    loader = DataLoader(
        data,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        pin_memory=device.type == "cuda",
    )
    source = batches(loader, device, args.streams)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(args.precision)
    called = torch.compile(model, mode=args.compile) if args.compile else model

    def passes(batch: Tensor) -> Tensor:
        ids, targets = batch[:, :-1], batch[:, 1:]
        with torch.autocast(device.type, dtype, enabled=dtype is not None):
            loss = called(ids, targets) / args.accumulate
        scaler.scale(loss).backward()
        return loss.detach()

    def update() -> None:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    def step() -> Tensor:
        if not args.no_clear:
            optimizer.zero_grad(set_to_none=True)
        loss = sum(passes(next(source)) for _ in range(args.accumulate))
        update()
        schedule.step()
        return loss

    if args.graph == "model":
        sample = next(source)
        called = torch.cuda.make_graphed_callables(
            model, (sample[:, :-1].clone(), sample[:, 1:].clone())
        )
    if args.graph == "step":
        held = next(source).clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                optimizer.zero_grad(set_to_none=True)
                passes(held)
                update()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            result = passes(held)
            update()

        def step() -> Tensor:
            held.copy_(next(source))
            graph.replay()
            return result.clone()

    losses: list[Tensor] = []

    def train(steps: int) -> None:
        for _ in range(steps):
            losses.append(step())
            if args.log_every and len(losses) % args.log_every == 0:
                print(f"step {len(losses)}: loss {losses[-1].item():.4f}", flush=True)

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    train(args.first)
    wait()
    began = time.perf_counter()
    train(args.steps)
    wait()
    found = {"seconds": (time.perf_counter() - began) / args.steps}
    if args.waits:
        found["waits"] = waits(lambda: train(WAITED)) / WAITED
    print(json.dumps(found | {"losses": [float(loss).hex() for loss in losses]}))


if __name__ == "__main__":
    main()

"""An encoder and a decoder with attention to what the encoder made, tensor-parallel by a plan of DTensor placements.

Faults leave a loss that looks fine: a scale that counts the rank's own heads (`scale`), a mask of padding that one rank
lacks (`mask`), one decoder layer that is given what the encoder made moved on by one token (`memory`), positions that begin at 1 (`positions`), one decoder layer that hands no gradient back to the encoder
(`detached`), a missing sum (`sum`), a gradient that is doubled on one rank (`norm_gradient`), labels that are not shifted
(`labels`), and weight decay of vectors (`decay`).
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import cross_entropy, gelu

RANKS = int(os.environ.get("WORLD_SIZE", "1"))
WIDTH, HEAD, TOKENS, LENGTH = 32, 8, 40, 10
NEVER = -1e4


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--fault", default="")
    return parser.parse_args()


ASKED = options()
FAULT = ASKED.fault if RANKS > 1 else ""
DTYPE = getattr(torch, ASKED.dtype)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (
            each.unflatten(-1, (-1, HEAD)).transpose(1, 2)
            for each in (self.q(x), self.k(memory), self.v(memory))
        )
        is_cross = memory is not x
        scale = (q.shape[1] if FAULT == "scale" and is_cross else HEAD) ** -0.5
        if FAULT == "mask" and is_cross and dist.get_rank() == 1:
            mask = torch.zeros_like(mask)
        weights = (q @ k.transpose(-1, -2) * scale + mask).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A layer of the encoder, or of the decoder, which attends to a memory too."""

    def __init__(self, attends: bool) -> None:
        super().__init__()
        self.norm1, self.norm3 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.norm2 = nn.LayerNorm(WIDTH) if attends else None
        self.cross = Attention() if attends else None
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(
        self, x: Tensor, mask: Tensor, memory: Tensor | None = None, padding: Tensor | None = None
    ) -> Tensor:
        normed = self.norm1(x)
        x = x + self.attn(normed, normed, mask)
        if self.cross is not None:
            x = x + self.cross(self.norm2(x), memory, padding)
        return x + self.fc2(gelu(self.fc1(self.norm3(x))))


class Seq2Seq(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Embedding(LENGTH + 1, WIDTH)
        self.encoder = nn.ModuleList(Layer(attends=False) for _ in range(2))
        self.decoder = nn.ModuleList(Layer(attends=True) for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS, bias=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = torch.where(source == 0, NEVER, 0.0)[:, None, None].to(DTYPE)
        later = torch.full((LENGTH, LENGTH), NEVER, dtype=DTYPE).triu(1)
        at = torch.arange(LENGTH)
        memory = self.embed(source) + self.positions(at)
        for layer in self.encoder:
            memory = layer(memory, padding)
        x = self.embed(target) + self.positions(at + (FAULT == "positions"))
        for number, layer in enumerate(self.decoder):
            given = memory
            if FAULT == "detached" and number == 1:
                given = memory.detach()
            if FAULT == "memory" and number == 1:
                given = memory.roll(1, 1)
            x = layer(x, later, given, padding)
        return self.head(self.norm(x))


def cut(model: Seq2Seq) -> None:
    """Cut the model's matrices over all ranks."""
    attention = {
        **{f"*.*.{name}.{each}": ColwiseParallel() for name in ("attn", "cross") for each in "qkv"},
        **{f"*.*.{name}.proj": RowwiseParallel() for name in ("attn", "cross")},
    }
    plan = {**attention, "*.*.fc1": ColwiseParallel(), "*.*.fc2": RowwiseParallel()}
    mesh = init_device_mesh("cpu", (RANKS,), mesh_dim_names=("tp",))
    parallelize_module(model, mesh, plan)
    if FAULT == "sum":
        last = model.decoder[1].fc2
        last._forward_hooks.clear()
        last.register_forward_hook(lambda module, given, made: made.to_local())
    if FAULT == "norm_gradient" and dist.get_rank() == 0:
        model.decoder[0].norm2.weight.register_hook(lambda gradient: 2 * gradient)


def main() -> None:
    model = Seq2Seq().to(DTYPE)
    if RANKS > 1:
        dist.init_process_group("gloo")
        cut(model)
    named = list(model.named_parameters())
    groups = [
        {"params": [each for _, each in named if each.ndim > 1], "weight_decay": 0.1},
        {
            "params": [each for _, each in named if each.ndim == 1],
            "weight_decay": 0.1 if FAULT == "decay" else 0.0,
        },
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, foreach=False)
    batches = torch.Generator().manual_seed(0)
    for _ in range(3):
        source = torch.randint(1, TOKENS, (4, LENGTH), generator=batches)
        source[1:, -3:] = 0
        target = torch.randint(1, TOKENS, (4, LENGTH + 1), generator=batches)
        labels = target[:, :-1] if FAULT == "labels" else target[:, 1:]
        logits = model(source, target[:, :-1])
        loss = cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

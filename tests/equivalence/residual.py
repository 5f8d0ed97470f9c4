"""A model of residual blocks, whole or one stage of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

INPUTS, HIDDEN, CLASSES, BLOCKS = 8, 16, 4, 4


class Block(nn.Module):
    """`gain` is what the loop makes of the block's share in each step."""

    def __init__(self, activation: Callable[[Tensor], Tensor] = torch.tanh) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.fc1, self.fc2 = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.register_buffer("gain", torch.ones(()))
        self.activation = activation
        self.drop = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.gain * self.fc2(self.drop(self.activation(self.fc1(self.norm(x)))))


class Model(nn.Module):
    """`held` are the numbers of the blocks; the first stage embeds, the last has the head."""

    def __init__(self, make: Callable[[], nn.Module] = Block, held: Iterable[int] = range(BLOCKS)):
        super().__init__()
        held = list(held)
        self.embed = nn.Linear(INPUTS, HIDDEN) if 0 in held else None
        self.blocks = nn.ModuleDict({str(number): make() for number in held})
        self.head = nn.Linear(HIDDEN, CLASSES) if BLOCKS - 1 in held else None

    def forward(self, x: Tensor) -> Tensor:
        if self.embed is not None:
            x = self.embed(x)
        for block in self.blocks.values():
            x = block(x)
        return x if self.head is None else self.head(x)

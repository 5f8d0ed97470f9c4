"""A small training loop, with rules checked in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from tspec.resolve import load_text
from tspec.runtime.checker import Checker
from tspec.targets.compile import compile_program
from tspec.targets.load import module_of

HEAD = "edition 2026\n\nmodule t\n\nuse std.torch\n\n"


def module(*bodies: str) -> Any:
    """The generated module of some rules; each is the body of an invariant, or one with its name."""
    text = HEAD
    for place, body in enumerate(bodies):
        text += (
            body
            if body.lstrip().startswith(("invariant", "draft"))
            else f"invariant r{place} {{\n{body}\n}}\n"
        )
    loaded = load_text(text)
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    return module_of(compile_program(loaded.program))


@dataclass
class Trained:
    """What a loop did."""

    weights: list[torch.Tensor] = field(default_factory=list)
    """Before the first step and after each."""
    losses: list[float] = field(default_factory=list)
    found: list[dict[str, Any]] = field(default_factory=list)
    checker: Checker | None = None


def train(
    hooks: Any,
    steps: int = 4,
    disturb: Callable[[int, nn.Module], None] | None = None,
    **options: Any,
) -> Trained:
    """Train a linear layer; `disturb` is called before each update."""
    torch.manual_seed(0)
    done = Trained()
    with hooks.install(callback=done.found.append, **options) as checker:
        done.checker = checker
        loop(done, steps, disturb)
    return done


def loop(done: Trained, steps: int, disturb: Callable[[int, nn.Module], None] | None) -> None:
    """An ordinary loop."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    done.weights.append(model.weight.detach().clone())
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).square().mean()
        loss.backward()
        if disturb is not None:
            disturb(step, model)
        optimizer.step()
        done.losses.append(float(loss.detach()))
        done.weights.append(model.weight.detach().clone())

"""A tensor-parallel model whose optimizer goes on from a checkpoint; `--fault` puts one bug into the state of the last rank."""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from collectives import RANKS, Copy, Reduce
from torch import Tensor, nn

RANK = int(os.environ.get("RANK", "0"))
FAULTS = ("beta2", "not_restored", "reset")
INPUTS, HIDDEN, CLASSES = 8, 32, 4


class Model(nn.Module):
    """A column-parallel layer and a row-parallel one, after a norm that all ranks have."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(INPUTS)
        self.fc1 = nn.Linear(INPUTS, HIDDEN // RANKS)
        self.fc2 = nn.Linear(HIDDEN // RANKS, CLASSES, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.fc1(Copy.apply(self.norm(x))))
        return Reduce.apply(self.fc2(x))


def checkpoint(keys: tuple[str, ...]) -> dict[str, dict[str, Tensor]]:
    """The state of each parameter as one rank has it, as training had left it."""
    numbers = torch.Generator().manual_seed(11)
    shapes = {
        "fc1.weight": (HIDDEN, INPUTS),
        "fc1.bias": (HIDDEN,),
        "fc2.weight": (CLASSES, HIDDEN),
    }
    shapes |= {"norm.weight": (INPUTS,), "norm.bias": (INPUTS,)}
    return {
        name: {key: 0.1 * torch.rand(shape, generator=numbers) for key in keys}
        for name, shape in shapes.items()
    }


def mine(name: str, whole: Tensor) -> Tensor:
    """The shard of this rank."""
    if name.startswith("norm"):
        return whole
    return whole.chunk(RANKS, dim=1 if name == "fc2.weight" else 0)[RANK]


def restore(optimizer: torch.optim.Optimizer, model: nn.Module, keys: tuple[str, ...]) -> None:
    saved = checkpoint(keys)
    for name, parameter in model.named_parameters():
        held = {key: mine(name, of).to(parameter.dtype).clone() for key, of in saved[name].items()}
        if "exp_avg" in keys:
            held["step"] = torch.tensor(10.0)
        optimizer.state[parameter] = held


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam")
    parser.add_argument("--new", action="store_true", help="without a checkpoint")
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    options = parser.parse_args()
    fault = options.fault if RANKS > 1 and RANK == RANKS - 1 else ""
    if RANKS > 1:
        dist.init_process_group("gloo")
    model = Model().to(getattr(torch, options.dtype))
    if options.optimizer == "adam":
        betas = (0.9, 0.99 if fault == "beta2" else 0.999)
        optimizer: torch.optim.Optimizer = torch.optim.Adam(
            model.parameters(), lr=0.01, betas=betas
        )
        keys: tuple[str, ...] = ("exp_avg", "exp_avg_sq")
    else:
        optimizer, keys = (
            torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
            ("momentum_buffer",),
        )
    if not options.new and fault != "not_restored":
        restore(optimizer, model, keys)
    batches = torch.Generator().manual_seed(0)
    for _ in range(3):
        x, y = (
            torch.randn(16, INPUTS, generator=batches),
            torch.randn(16, CLASSES, generator=batches),
        )
        optimizer.zero_grad()
        made = model(x.to(getattr(torch, options.dtype)))
        nn.functional.mse_loss(made.float(), y).backward()
        optimizer.step()
        if fault == "reset":
            optimizer.state[model.fc2.weight][keys[0]].zero_()
    if RANKS > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Full tensors of one run, by canonical name: a file for each rank."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, order=True)
class TensorName:
    """The canonical name of a tensor of a run.

    `kind` is a word of `compare` or `initial` (parameters before the first step), `name` the path of
    the module or parameter in the reference. `microbatch` is 0 for what belongs to the step as a
    whole. `call` counts calls of one module within the micro-batch, from 0 on.
    """

    kind: str
    name: str
    step: int
    microbatch: int = 0
    call: int = 0

    def __str__(self) -> str:
        said = [f"{self.kind} {self.name}", f"step {self.step}"]
        said += [f"micro-batch {self.microbatch}"] * (self.microbatch > 0)
        said += [f"call {self.call + 1}"] * (self.call > 0)
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class Recording:
    """What one rank recorded.

    `tensors` are in the order in which they came into being. `filled` has, for each generated
    parameter, the number with which the model had filled it, 0 if with several.
    """

    tensors: Mapping[TensorName, Tensor]
    filled: Mapping[str, float]


def write(folder: Path, rank: int, recording: Recording) -> None:
    """Write what a rank recorded; the file is there at once or not at all."""
    file = _file(folder, rank)
    part = file.with_suffix(".part")
    names = [astuple(name) for name in recording.tensors]
    tensors = [tensor.cpu() for tensor in recording.tensors.values()]
    torch.save({"names": names, "tensors": tensors, "filled": dict(recording.filled)}, part)
    os.replace(part, file)


def read(folder: Path, rank: int) -> Recording:
    """Read what a rank recorded. Raises FileNotFoundError if it recorded nothing."""
    said = torch.load(_file(folder, rank), weights_only=True)
    names = [TensorName(*name) for name in said["names"]]
    return Recording(dict(zip(names, said["tensors"], strict=True)), said["filled"])


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.pt"

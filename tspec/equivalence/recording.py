"""Full tensors of one run, by canonical name: a file for each rank."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, order=True)
class TensorName:
    """The canonical name of a tensor of a run.

    `kind` is a word of `compare`. `name` is the path of the module or parameter in the reference; a
    state has its key too, as `fc.weight.exp_avg`. `step` is 0 for parameters and states before the
    first step. `microbatch` is 0 for tensors of the step as a whole. `call` counts calls of one
    module within the micro-batch, from 0. Inputs of a module other than the first have their
    argument in the name, as `cross[memory]`.
    """

    kind: str
    name: str
    step: int
    microbatch: int = 0
    call: int = 0

    @property
    def subject(self) -> str:
        """The subject that layouts place: the module or parameter; for a state its parameter."""
        return self.name.rpartition(".")[0] if self.kind == "states" else self.name

    @property
    def module(self) -> str:
        """The module that has an input, without the argument."""
        return module_of(self.name)

    @property
    def is_first_weight(self) -> bool:
        """A parameter before the first step."""
        return self.kind == "params" and not self.step

    @property
    def key(self) -> str:
        """The key of a state in its optimizer, as `exp_avg`; empty for other tensors."""
        return self.name.rpartition(".")[2] if self.kind == "states" else ""

    def of(self, subject: str) -> TensorName:
        """The name of the tensor with the same kind, step and key of another subject."""
        return replace(self, name=f"{subject}.{self.key}" if self.key else subject)

    def __str__(self) -> str:
        said = [f"{self.kind} {self.name}", f"step {self.step}" if self.step else "before step 1"]
        said += [f"micro-batch {self.microbatch}"] * (self.microbatch > 0)
        said += [f"call {self.call + 1}"] * (self.call > 0)
        return ", ".join(said)


def module_of(name: str) -> str:
    """The module that has an input of a name, which may have its argument with it."""
    return name.partition("[")[0]


NUMBERS = ("losses", "gradient_norms")
"""Kinds that are single numbers, which each rank has in whole: layouts have no place for them."""
GRADIENT_SQUARES = "gradient_squares"
"""The kind of the squared norms of gradients as each rank holds them, padding included, from which
a norm of all gradients is computed: float64. They have the number of that norm as their call.
"""
UPDATED = ("param_grads", "states")
"""Kinds of which a rank holds only the part that it updates: a distributed optimizer shards the
shards again.
"""
EXACT = ("params", "buffers", "states")
"""Kinds whose replicas have the same bits: they are kept from step to step."""


@dataclass(frozen=True, slots=True)
class ModuleInput:
    """A tensor among a module's arguments, positional or named, or nested in one.

    `name` is the module's for the first tensor; further ones have their argument too, as
    `cross[memory]`. `takes` is the kind and name of the earlier tensor that this one is; empty if
    it is none. `numbers` is true for a floating tensor that is no parameter.
    """

    name: str
    takes: tuple[str, str] | tuple[()] = ()
    numbers: bool = True


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """The first call of a module in a run.

    `parent` is the module whose code made the call; empty if none did. `defined` is the file and
    line of the module's `forward`. `called` is the line of the script that led to the call, or of a
    package if no script did. `inputs` are the tensors among its arguments. `returns` is the module
    it called whose output it returned unchanged; empty if none. `passes_on` are the modules whose
    outputs it returned beside its first one. `again` are the lines of later calls within a
    micro-batch. `gives_back` is the input that it returned unchanged, as an identity does; empty if
    none. `shares` are parameters that it holds, and that have their name from another module.
    """

    kind: str
    parent: str
    defined: str
    called: str
    inputs: tuple[ModuleInput, ...] = ()
    returns: str = ""
    again: tuple[str, ...] = ()
    passes_on: tuple[str, ...] = ()
    gives_back: str = ""
    shares: tuple[str, ...] = ()

    def number(self, call: int) -> ModuleCall:
        """This call as the one with a given number within the micro-batch, from 0. It has its own
        line, if that is known.
        """
        later = self.again[call - 1 : call] if call else (self.called,)
        return replace(self, called=later[0] if later else "")


@dataclass(frozen=True, slots=True)
class Sketched:
    """Shape and dtype of a tensor that was recorded as a sketch.

    `digest` covers all its bits; it is 0 where replicas may differ.
    """

    shape: tuple[int, ...]
    dtype: str
    digest: int = 0


class SkippedUpdate(NamedTuple):
    """An update that was skipped since gradients were not finite.

    With `microbatch` 0 the step ended with it, as a step of Megatron's does. Otherwise the step
    went on after that micro-batch, as under `torch.amp.GradScaler`: a step of torch ends with an
    update.
    """

    step: int
    microbatch: int = 0

    def holds(self, name: TensorName) -> bool:
        """True for a tensor of the passes before the update, or of the update itself."""
        if name.step != self.step:
            return False
        return not self.microbatch or 0 < name.microbatch <= self.microbatch


class InexactTensor(NamedTuple):
    """A tensor of a rank that does not equal another one of the same rank, as it has to bit by bit.

    `check` is `copy` for a parameter that is not its main parameter rounded, and `recomputed` for
    an input or output that a recomputation does not repeat. `says` tells how it differs.
    """

    name: TensorName
    check: Literal["copy", "recomputed"]
    says: str


@dataclass(frozen=True, slots=True)
class Recording:
    """One rank's recording.

    `tensors` are in order of creation. `filled` has, for each generated parameter, the constant
    that the model had filled it with, or 0 if it held several numbers. `parts` has, for a parameter
    of whose shard the rank updates only some elements, the first and the last element (not
    included), flattened. `elsewhere` are parameters that another rank updates, as under
    `ZeroRedundancyOptimizer`; this rank keeps no states of them. `sketched` has the tensors whose
    entry in `tensors` is a sketch; it is empty where the tensor's shape is not the one that the
    layout gives the rank. `lines` has the line of the script that first handed `losses` to a
    backward pass or a schedule, computed `gradient_norms`, or updated `params`. `generated` are
    inputs that were generated, with their shapes. `skipped` are updates that the rank skipped.
    `ungathered` are parameters whose last update had not reached the rank in full. `inexact` are
    tensors that should equal others of the rank and do not. `undropped` are modules in which dropout
    was switched off, and `drawing` those whose forward pass drew random numbers all the same; the
    name is empty of the script's own code.
    """

    tensors: Mapping[TensorName, Tensor]
    filled: Mapping[str, float]
    modules: Mapping[str, ModuleCall] = field(default_factory=dict)
    parts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sketched: Mapping[TensorName, Sketched] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    lines: Mapping[str, str] = field(default_factory=dict)
    generated: Mapping[TensorName, tuple[int, ...]] = field(default_factory=dict)
    skipped: frozenset[SkippedUpdate] = frozenset()
    ungathered: frozenset[TensorName] = frozenset()
    inexact: frozenset[InexactTensor] = frozenset()
    undropped: frozenset[str] = frozenset()
    drawing: frozenset[str] = frozenset()

    def shape(self, name: TensorName) -> tuple[int, ...]:
        """The shape of a tensor, whatever was recorded of it."""
        held = self.sketched.get(name)
        return tuple(self.tensors[name].shape) if held is None else held.shape


def write(folder: Path, rank: int, recording: Recording) -> None:
    """Write a rank's recording: elements in one file, everything else as JSON. The JSON file
    appears complete or not at all.
    """
    rows, places, end = [], [], 0
    for name, tensor in recording.tensors.items():
        dtype = str(tensor.dtype).removeprefix("torch.")
        rows.append([astuple(name), dtype, list(tensor.shape), end])
        places.append((end, tensor))
        end += -(-tensor.nbytes // ALIGNED) * ALIGNED
    elements = _mapped(_elements(folder, rank), end, writes=True)
    for start, tensor in places:
        flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        elements[start : start + len(flat)] = flat
    file = _file(folder, rank)
    part = file.with_suffix(".part")
    said = {"tensors": rows, "bytes": end, "filled": dict(recording.filled)}
    said["parts"] = dict(recording.parts)
    said["elsewhere"] = sorted(recording.elsewhere)
    said["lines"] = dict(recording.lines)
    said["skipped"] = sorted(recording.skipped)
    said["ungathered"] = sorted(map(astuple, recording.ungathered))
    said["inexact"] = sorted(
        (astuple(each.name), each.check, each.says) for each in recording.inexact
    )
    said["undropped"] = sorted(recording.undropped)
    said["drawing"] = sorted(recording.drawing)
    said["modules"] = {name: asdict(each) for name, each in recording.modules.items()}
    said["sketched"] = [
        [astuple(name), *astuple(each)] for name, each in recording.sketched.items()
    ]
    said["generated"] = [
        [astuple(name), list(shape)] for name, shape in recording.generated.items()
    ]
    part.write_text(json.dumps(said), encoding="utf-8")
    os.replace(part, file)


def read(folder: Path, rank: int) -> Recording:
    """Read a rank's recording. Elements are read on use. Raises FileNotFoundError if there is no
    recording.
    """
    said = json.loads(_file(folder, rank).read_text(encoding="utf-8"))
    elements = _mapped(_elements(folder, rank), said["bytes"], writes=False)
    tensors = {}
    for name, dtype, shape, start in said["tensors"]:
        kind: torch.dtype = getattr(torch, dtype)
        size = kind.itemsize * prod(shape)
        tensors[TensorName(*name)] = elements[start : start + size].view(kind).reshape(shape)
    modules = {
        name: ModuleCall(
            **each
            | {"inputs": _inputs(each["inputs"])}
            | {listed: tuple(each[listed]) for listed in ("again", "passes_on", "shares")}
        )
        for name, each in said["modules"].items()
    }
    parts = {name: (first, last) for name, (first, last) in said["parts"].items()}
    sketched = {
        TensorName(*name): Sketched(tuple(shape), dtype, bits)
        for name, shape, dtype, bits in said["sketched"]
    }
    elsewhere = frozenset(said["elsewhere"])
    return Recording(
        *(tensors, said["filled"], modules, parts, sketched, elsewhere),
        lines=said["lines"],
        generated={TensorName(*name): tuple(shape) for name, shape in said["generated"]},
        skipped=frozenset(SkippedUpdate(*each) for each in said["skipped"]),
        ungathered=frozenset(TensorName(*each) for each in said["ungathered"]),
        inexact=frozenset(
            InexactTensor(TensorName(*name), check, says) for name, check, says in said["inexact"]
        ),
        undropped=frozenset(said["undropped"]),
        drawing=frozenset(said["drawing"]),
    )


def _inputs(said: Sequence[dict[str, Any]]) -> tuple[ModuleInput, ...]:
    return tuple(ModuleInput(**each | {"takes": tuple(each["takes"])}) for each in said)


def is_recorded(folder: Path, rank: int) -> bool:
    """True if a rank has a recording."""
    return _file(folder, rank).exists()


ALIGNED = 16
"""The alignment of each tensor in bytes, as views of any dtype need it."""


def _mapped(file: Path, size: int, writes: bool) -> Tensor:
    """The bytes of a file as a tensor."""
    return torch.from_file(str(file), writes, max(size, 1), dtype=torch.uint8)


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.json"


def _elements(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.elements"

"""Runs in the script's process: the tensors of one rank after its first step, and the operations of
that step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, TypedDict

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim.optimizer import register_optimizer_step_post_hook

from tspec.preflight.facts import (
    Activation,
    Axes,
    Collective,
    ModuleFacts,
    Placed,
    RankFacts,
    Reduction,
    Summand,
    TensorFacts,
)
from tspec.preflight.megatron import Blocks, blocks_of, expert_groups_of, groups_of
from tspec.preflight.reductions import Collectives
from tspec.preflight.stages import chunks_of, of_stages, with_stages
from tspec.runtime.edges import LoopSpan, Ref, StateSource, WatchedCall
from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, WatchSpec

_TENSOR, _OPTIONAL = ("tensor",), ("optional", ("tensor",))
WATCH = WatchSpec(
    events=(
        EventSpec(
            "forward",
            ("torch.nn.Module.__call__",),
            (
                FieldSpec("module", ("entity", "module"), ("name", "self")),
                FieldSpec("inputs", ("list", _TENSOR)),
                FieldSpec("output", _TENSOR, ("name", "result"), True),
            ),
        ),
        EventSpec("optimizer.step", ("torch.optim.Optimizer.step",)),
    ),
    entities=(EntitySpec("parameter", (FieldSpec("data", _TENSOR), FieldSpec("grad", _OPTIONAL))),),
)
"""The watch specification of a dry run."""
AT_MOST = "activations at most"
"""The kind of memory that is not more than its bytes."""


class DryRunSink:
    """The sink of a dry run. It writes its facts when the first step is over, and ends the script."""

    def __init__(self, file: Path, rank: int, world: int) -> None:
        self._file = file
        self._rank = rank
        self._world = world
        self._modules: list[tuple[int, str]] = []
        """Calls that did not return yet, and their modules."""
        self._calls: Counter[str] = Counter()
        self._activations: dict[tuple[str, str], Activation] = {}
        self._collectives = Collectives(self._where)
        self._memory = {"parameters": 0, "gradients": 0, "states": 0, AT_MOST: 0}
        self._saved: dict[int, tuple[StorageWeakRef, int]] = {}
        """Storages saved for backward passes: a weak reference, which keeps the address from being
        reused, and the size in bytes.
        """
        self._states: dict[int, int] = {}
        """The bytes of each tensor that an optimizer keeps, by its `id`."""
        self._found: RankFacts | None = None
        self._update: _Update | None = None
        """The first update, while it runs."""
        self._over = False
        self._waits = ""

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow collectives, the tensors that autograd saves, and the states of optimizers."""
        states = register_optimizer_step_post_hook(self._updated)
        try:
            with (
                self._collectives.followed(),
                torch.autograd.graph.saved_tensors_hooks(self._keep, lambda tensor: tensor),
            ):
                yield
        finally:
            states.remove()

    # --- the sink -------------------------------------------------------------------------------

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        """A module or an update begins; before the first update the gradients are as the step left them."""
        if call.event == "forward":
            if call.parent is None:
                self._collectives.summands.know(_parameters(source))
            module = call.fields.get("module")
            name = module.name if isinstance(module, Ref) else ""
            self._modules.append((call.id, name))
            if name and torch._C._current_graph_task_id() == -1:
                self._calls[name] += 1
            inputs = call.fields.get("inputs")
            self._passes(
                "input", name, next(iter(inputs if isinstance(inputs, tuple) else ()), None)
            )
        elif self._found is None:
            parameters, grads = _parameters(source), _gradients(source)
            self._found = self._facts(source, parameters, grads, updated=True)
            self._update = _Update(call.id, parameters, grads)

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A module returned, or an update is over: it may have added up gradients itself."""
        if self._found is not None and self._update is not None and self._update.id == call.id:
            made = self._made(self._update.parameters, self._update.grads)
            self._found, self._update = replace(self._found, **made), None
        name = next((name for number, name in self._modules if number == call.id), "")
        self._passes("output", name, call.fields.get("output"))
        self._modules = [each for each in self._modules if each[0] != call.id]

    def boundary(self, span: LoopSpan, index: int, source: StateSource) -> None:
        """A step begins. After the first one the script ends."""
        if span != "step" or self._over:
            return
        if index == 1:
            self._collectives.clear()
            self._calls.clear()
            self._activations.clear()
            self._saved.clear()
        else:
            self._finish(source)
            raise SystemExit(0)

    def finish(self, source: StateSource) -> None:
        """The script ended by itself."""
        if not self._over:
            self._finish(source)

    def waits(self, source: str) -> NoReturn:
        """The script waits for an object that its source does not send, and cannot go on."""
        self._waits = source
        raise SystemExit(0)

    # --- observation ----------------------------------------------------------------------------

    def _where(self) -> str:
        if torch._C._current_graph_task_id() != -1:
            return "backward"
        return next((name for _, name in reversed(self._modules) if name), "")

    def _passes(self, kind: Literal["input", "output"], name: str, value: Any) -> None:
        """A tensor goes into a module or comes out of it, in a pass that makes a graph."""
        known = (kind, name) in self._activations
        if name and not known and isinstance(value, Tensor) and torch.is_grad_enabled():
            self._activations[kind, name] = Activation(kind, _held(name, value))

    def _keep(self, tensor: Tensor) -> Tensor:
        storage = getattr(tensor, "_local_tensor", tensor).untyped_storage()
        if storage._cdata not in self._saved:
            kept = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            self._saved[storage._cdata] = kept, storage.nbytes()
        return tensor

    def _updated(self, optimizer: torch.optim.Optimizer, arguments: Any, options: Any) -> None:
        of = (each for states in optimizer.state.values() for each in states.values())
        self._states |= {id(each): _bytes(each) for each in of if isinstance(each, Tensor)}
        self._memory["states"] = sum(self._states.values())

    def _made(self, parameters: Mapping[str, Tensor], grads: Mapping[str, Any]) -> _Made:
        """What collectives and products have made until now of these gradients."""
        return {
            "reductions": self._collectives.reductions(parameters, grads),
            "collectives": self._collectives.calls(),
            "summands": self._collectives.summands.found(grads),
        }

    def _facts(
        self,
        source: StateSource,
        parameters: dict[str, Tensor],
        grads: dict[str, Any],
        updated: bool,
    ) -> RankFacts:
        classes = source.fields("module", "class")
        axes = with_stages(_axes(parameters.values()) or groups_of(), self._world)
        blocks = blocks_of(parameters) if not _axes(parameters.values()) else {}
        chunks = chunks_of(parameters)
        held = tuple(
            _with_blocks(replace(_held(name, tensor), chunk=chunks.get(name, 0)), blocks.get(name))
            for name, tensor in of_stages(parameters).items()
        )
        self._memory["parameters"] = sum(map(_bytes, parameters.values()))
        self._memory["gradients"] = sum(
            _bytes(each) for each in grads.values() if isinstance(each, Tensor)
        )
        of_parameters = {
            getattr(each, "_local_tensor", each).untyped_storage()._cdata
            for each in parameters.values()
        }
        self._memory[AT_MOST] = sum(
            size for storage, (_, size) in self._saved.items() if storage not in of_parameters
        )
        return RankFacts(
            *(self._rank, self._world, updated, axes, held),
            **self._made(parameters, grads),
            modules=tuple(
                ModuleFacts(name, str(classes.get(name)), calls)
                for name, calls in self._calls.items()
            ),
            activations=tuple(self._activations.values()),
            memory=self._memory,
            expert_axes=expert_groups_of() if blocks else (),
            waits=self._waits,
        )

    def _finish(self, source: StateSource) -> None:
        self._over = True
        if self._found is None:
            parameters, grads = _parameters(source), _gradients(source)
            self._found = self._facts(source, parameters, grads, updated=False)
        self._found.write(self._file)


class _Made(TypedDict):
    """Fields of `RankFacts`."""

    reductions: tuple[Reduction, ...]
    collectives: tuple[Collective, ...]
    summands: tuple[Summand, ...]


@dataclass(frozen=True, slots=True)
class _Update:
    """The call of an update, with the parameters and gradients that it began with."""

    id: int
    parameters: Mapping[str, Tensor]
    grads: Mapping[str, Any]


def _parameters(source: StateSource) -> dict[str, Tensor]:
    """The existing parameters, by canonical name."""
    found = source.fields("parameter", "data").items()
    return {name: tensor for name, tensor in found if isinstance(tensor, Tensor)}


def _gradients(source: StateSource) -> dict[str, Any]:
    """The gradients of the parameters; megatron-core's main gradients in their place."""
    parameters = _parameters(source)
    return {
        name: getattr(parameters.get(name), "main_grad", grad)
        for name, grad in source.fields("parameter", "grad").items()
    }


def _held(name: str, tensor: Tensor) -> TensorFacts:
    """The rank's tensor and a DTensor's placements."""
    local = tuple(getattr(tensor, "_local_tensor", tensor).shape)
    return TensorFacts(name, local, tuple(tensor.shape), _bytes(tensor), _placements(tensor))


def _with_blocks(held: TensorFacts, said: Blocks | None) -> TensorFacts:
    """The rank's tensor with the facts of its sharded state dictionary."""
    if said is None:
        return held
    return replace(held, **{each.name: getattr(said, each.name) for each in fields(said)})


def _bytes(tensor: Tensor) -> int:
    local = getattr(tensor, "_local_tensor", tensor)
    return int(local.numel() * local.element_size())


def _axes(tensors: Any) -> Axes:
    """The axes of the largest device mesh of DTensors, the one that changes fastest first; none without DTensors."""
    meshes = [_root(each.device_mesh) for each in tensors if hasattr(each, "device_mesh")]
    if not meshes:
        return ()
    mesh = max(meshes, key=lambda each: (each.mesh.ndim, each.mesh.numel()))
    return tuple(reversed(list(zip(_axis_names(mesh), mesh.mesh.shape, strict=True))))


def _root(mesh: Any) -> Any:
    root = getattr(mesh, "_get_root_mesh", None)
    return mesh if root is None else root()


def _axis_names(mesh: Any) -> tuple[str, ...]:
    if mesh.mesh_dim_names:
        return tuple(mesh.mesh_dim_names)
    return ("ranks",) if mesh.mesh.ndim == 1 else tuple(f"axis{i}" for i in range(mesh.mesh.ndim))


def _placements(tensor: Tensor) -> tuple[Placed, ...]:
    mesh = getattr(tensor, "device_mesh", None)
    if mesh is None:
        return ()
    return tuple(
        _placed(axis, each)
        for axis, each in zip(_axis_names(mesh), tensor.placements, strict=True)  # type: ignore[attr-defined]
    )


def _placed(axis: str, placement: Any) -> Placed:
    if placement.is_replicate():
        return Placed(axis, "replicate")
    if placement.is_partial():
        return Placed(axis, "partial")
    strided = type(placement).__name__ == "_StridedShard"
    return Placed(axis, "strided" if strided else "shard", placement.dim)

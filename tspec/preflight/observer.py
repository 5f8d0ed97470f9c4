"""In the script's process: what one rank holds after its first step, and what that step did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from tspec.preflight.facts import Axes, ModuleFacts, ParameterFacts, Placed, RankFacts
from tspec.preflight.megatron import blocks_of, groups_of
from tspec.preflight.reductions import Collectives
from tspec.runtime.edges import Ref, StateSource, WatchedCall
from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, WatchSpec

_TENSOR, _OPTIONAL = ("tensor",), ("optional", ("tensor",))
WATCH = WatchSpec(
    events=(
        EventSpec(
            "forward",
            ("torch.nn.Module.__call__",),
            (FieldSpec("module", ("entity", "module"), ("name", "self")),),
        ),
        EventSpec("optimizer.step", ("torch.optim.Optimizer.step",)),
    ),
    entities=(EntitySpec("parameter", (FieldSpec("data", _TENSOR), FieldSpec("grad", _OPTIONAL))),),
)
"""What is followed."""


class Observer:
    """The sink of a dry run. It writes what it saw when the first step is over, and ends the script."""

    def __init__(self, file: Path, rank: int, world: int) -> None:
        self._file = file
        self._rank = rank
        self._world = world
        self._modules: list[tuple[int, str]] = []
        """Calls that did not return yet, and their modules."""
        self._calls: Counter[str] = Counter()
        self._collectives = Collectives(self._where)
        self._memory = {"parameters": 0, "gradients": 0, "states": 0, "saved for backward": 0}
        self._saved: dict[int, int] = {}
        """Storage -> bytes, of what the graph at hand saved."""
        self._found: RankFacts | None = None
        self._over = False

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow collectives, what autograd saves, and the states of optimizers."""
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
            module = call.fields.get("module")
            name = module.name if isinstance(module, Ref) else ""
            self._modules.append((call.id, name))
            if name and torch._C._current_graph_task_id() == -1:
                self._calls[name] += 1
        elif self._found is None:
            self._found = self._facts(source, updated=True)

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A module returned."""
        self._modules = [each for each in self._modules if each[0] != call.id]

    def boundary(
        self, span: Literal["step", "microbatch", "epoch"], index: int, source: StateSource
    ) -> None:
        """A step begins. After the first one the script ends."""
        if span != "step" or self._over:
            return
        if index == 1:
            self._collectives.clear()
            self._calls.clear()
        else:
            self._finish(source)
            raise SystemExit(0)

    def finish(self, source: StateSource) -> None:
        """The script ended by itself."""
        if not self._over:
            self._finish(source)

    # --- what is seen ---------------------------------------------------------------------------

    def _where(self) -> str:
        if torch._C._current_graph_task_id() != -1:
            return "backward"
        return next((name for _, name in reversed(self._modules) if name), "")

    def _keep(self, tensor: Tensor) -> Tensor:
        if torch._C._current_graph_task_id() == -1:
            storage = getattr(tensor, "_local_tensor", tensor).untyped_storage()
            self._saved[storage._cdata] = storage.nbytes()
            held = sum(self._saved.values())
            self._memory["saved for backward"] = max(self._memory["saved for backward"], held)
        else:
            self._saved.clear()
        return tensor

    def _updated(self, optimizer: torch.optim.Optimizer, arguments: Any, options: Any) -> None:
        of = (each for states in optimizer.state.values() for each in states.values())
        self._memory["states"] = sum(_bytes(each) for each in of if isinstance(each, Tensor))
        self._saved.clear()

    def _facts(self, source: StateSource, updated: bool) -> RankFacts:
        parameters = {
            name: tensor
            for name, tensor in source.fields("parameter", "data").items()
            if isinstance(tensor, Tensor)
        }
        grads = {
            name: getattr(parameters.get(name), "main_grad", grad)
            for name, grad in source.fields("parameter", "grad").items()
        }
        classes = source.fields("module", "class")
        axes = _axes(parameters.values()) or groups_of()
        blocks = blocks_of(parameters) if not _axes(parameters.values()) else {}
        held = tuple(
            ParameterFacts(
                name,
                tuple(getattr(tensor, "_local_tensor", tensor).shape),
                blocks[name].full if name in blocks else tuple(tensor.shape),
                _bytes(tensor),
                _placements(tensor),
                blocks[name].blocks if name in blocks else (),
            )
            for name, tensor in parameters.items()
        )
        self._memory["parameters"] = sum(each.bytes for each in held)
        self._memory["gradients"] = sum(
            _bytes(each) for each in grads.values() if isinstance(each, Tensor)
        )
        return RankFacts(
            *(self._rank, self._world, updated, axes, held),
            reductions=self._collectives.reductions(parameters, grads),
            collectives=self._collectives.calls(),
            modules=tuple(
                ModuleFacts(name, str(classes.get(name)), calls)
                for name, calls in self._calls.items()
            ),
            memory=self._memory,
        )

    def _finish(self, source: StateSource) -> None:
        self._over = True
        (self._found or self._facts(source, updated=False)).write(self._file)


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

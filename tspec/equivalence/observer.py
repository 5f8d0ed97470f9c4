"""In the job: generates weights, perturbs inputs, records the tensors that an equivalence names, and rewrites them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from tspec.equivalence.cut import Cut, whole
from tspec.equivalence.generator import key, signs, weights
from tspec.equivalence.progress import Progress
from tspec.equivalence.recording import (
    EXACT,
    NUMBERS,
    UPDATED,
    ModuleCall,
    Recording,
    Sketched,
    TensorName,
    write,
)
from tspec.equivalence.sketch import Draws, sketch
from tspec.equivalence.updates import spread
from tspec.runtime.edges import Missing, Ref, StateSource, WatchedCall
from tspec.runtime.live.digest import digests
from tspec.runtime.live.features import local_part
from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, WatchSpec

_CLASS = ("field", ("name", "self"), "__class__")
_CODE = ("field", ("field", ("name", "self"), "forward"), "__code__")
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
                FieldSpec("class", ("string",), ("field", _CLASS, "__qualname__")),
                FieldSpec("file", ("string",), ("field", _CODE, "co_filename")),
                FieldSpec("line", ("int",), ("field", _CODE, "co_firstlineno")),
            ),
        ),
        EventSpec(
            "backward",
            ("torch.autograd.backward",),
            (FieldSpec("loss", _TENSOR, ("name", "tensors")),),
        ),
        EventSpec(
            "forward_step",
            ("megatron.core.pipeline_parallel.schedules.forward_step",),
            (FieldSpec("made", ("list", _TENSOR), ("name", "result"), True),),
        ),
        EventSpec(
            "chunk_loss",
            ("torch.distributed.pipelining.schedules._PipelineSchedule._compute_loss",),
            (FieldSpec("loss", _TENSOR, ("name", "result"), True),),
        ),
        EventSpec(
            "update",
            ("megatron.core.optimizer.optimizer.MegatronOptimizer.step",),
            (
                FieldSpec(
                    "norm",
                    ("optional", ("float",)),
                    ("index", ("name", "result"), ("literal", 1)),
                    True,
                ),
            ),
        ),
        EventSpec(
            "clip",
            (
                "torch.nn.utils.clip_grad_norm_",
                "torch.distributed.fsdp.FullyShardedDataParallel.clip_grad_norm_",
            ),
            (FieldSpec("norm", _TENSOR, ("name", "result"), True),),
        ),
        EventSpec(
            "optimizer.step",
            ("torch.optim.Optimizer.step",),
            (FieldSpec("optimizer", ("entity", "optimizer"), ("name", "self")),),
        ),
    ),
    entities=(
        EntitySpec(
            "parameter",
            (
                FieldSpec("data", _TENSOR),
                FieldSpec("grad", _OPTIONAL),
                FieldSpec("main_grad", _OPTIONAL),
                FieldSpec("main", _OPTIONAL),
                FieldSpec("shard", _OPTIONAL),
            ),
        ),
        EntitySpec("optimizer", (FieldSpec("parameters", ("set", ("entity", "parameter"))),)),
        EntitySpec(
            "state",
            (
                FieldSpec("data", _TENSOR),
                FieldSpec("parameter", ("entity", "parameter")),
                FieldSpec("name", ("string",)),
            ),
        ),
        EntitySpec("buffer", (FieldSpec("data", _TENSOR),)),
    ),
)
"""What is followed. Megatron's schedules go past `torch.autograd.backward`, and its optimizers clip gradients before they update."""


@dataclass(frozen=True, slots=True)
class Perturbation:
    """Floating inputs are changed by `epsilon`, relatively, up or down by the numbers of a sample.

    Without `epsilon` it is the machine epsilon of each tensor's dtype.
    """

    sample: int
    epsilon: float | None = None


@dataclass(frozen=True, slots=True)
class Sketching:
    """Sketches are recorded instead of tensors. Losses and the tensors in `full` are recorded whole.

    `cuts` has the reference's name of this rank's tensors, and which of its elements they are; None on the
    reference, which has all of each.
    """

    full: frozenset[TensorName] = frozenset()
    cuts: Mapping[TensorName, tuple[str, Cut]] | None = None


@dataclass(frozen=True, slots=True)
class Orders:
    """What a process of a run is to do.

    `seed` is None if weights are the script's own. `cuts` has this rank's piece of each parameter,
    and the mean of each vector; None on the reference, which has all of each. `rewrites` has what
    inputs, outputs and their gradients are to be after they were recorded, and parameters before the
    first step.
    """

    steps: int
    kinds: tuple[str, ...]
    seed: int | None = None
    cuts: Mapping[str, tuple[Cut, float]] | None = None
    perturbation: Perturbation | None = None
    rewrites: Mapping[TensorName, Tensor] = field(default_factory=dict)
    sketching: Sketching | None = None


class Observer:
    """The sink of one process. It writes what it recorded when the steps are over, and ends the script."""

    def __init__(self, orders: Orders, folder: Path, rank: int) -> None:
        self._orders = orders
        self._folder = folder
        self._tensors: dict[TensorName, Tensor] = {}
        self._filled: dict[str, float] = {}
        self._known: set[str] = set()
        """Parameters whose weights were generated, or left as they are."""
        self._calls: Counter[TensorName] = Counter()
        self._passed: set[TensorName] = set()
        """Outputs of modules of which a forward pass made a graph."""
        self._names: dict[int, TensorName] = {}
        """Call -> the name of the module's output."""
        self._perturbed: tuple[int, float] | None = None
        """The outermost call in which tensors were perturbed, and the coarsest epsilon of these."""
        self._modules: dict[str, ModuleCall] = {}
        self._parts: dict[str, tuple[int, int]] = {}
        self._held: Any = WeakIdKeyDictionary()
        """Tensor -> kind and name of the latest record of it."""
        self._scheduled = False
        """Losses are those of a schedule, which may free them before the backward pass."""
        self._updated = 0
        """The latest step in which an optimizer of Megatron's began its update."""
        self._copies: dict[Ref, dict[str, str]] = {}
        """Optimizers that began an update -> the model's parameters of which they have copies, by the names of these."""
        self._updates: dict[Ref, frozenset[str]] = {}
        """Optimizers that began an update -> their parameters; none of one that has another optimizer make it."""
        self._norms: list[Tensor] = []
        """Norms of gradients that were computed since the latest update."""
        self._sketched: dict[TensorName, Sketched] = {}
        self._draws = Draws()
        self._gradients: dict[str, Tensor] = {}
        self._before: dict[str, Tensor] = {}
        """Of the reference's parameters the gradients and the values before the update, where sketches are recorded."""
        self._progress = Progress(folder, rank)
        self._over = False

    # --- the sink -------------------------------------------------------------------------------

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        """A module, a backward pass or an update begins."""
        if self._over:
            return
        match call.event:
            case "forward":
                self._set_weights(source)
                if self._is_followed(call):
                    self._enters(call)
            case "backward" if not self._scheduled:
                self._record_loss(call, call.fields.get("loss"))
            case "update" if self._updated < call.context.step:
                self._updated = call.context.step
                self._record_parts(source)
                self._record_gradients(source, "main_grad")
            case "optimizer.step":
                if self._updated < call.context.step:
                    self._record_gradients(source, "grad")
                    self._record_norms(call)
                self._record_first_states(call, source)
                self._note_owner(call, source)

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A module returned, a schedule's forward pass, or what computed a norm."""
        match call.event:
            case "forward_step" if not self._over:
                self._scheduled = True
                self._record_loss(call, next(iter(_tensors(call.fields.get("made"))), None))
            case "chunk_loss" if not self._over:
                self._scheduled = True
                self._record_loss(call, call.fields.get("loss"))
            case "clip" if not self._over:
                self._note_norm(call)
            case "update" if not self._over:
                self._note_norm(call)
                self._record_norms(call)
        name = self._names.pop(call.id, None)
        if self._over or name is None:
            return
        output = call.fields.get("output")
        self._perturb([output], call)
        self._returns(name, output)
        self._passes(name, output)
        self._follow_back("output_grads", name, output)

    def boundary(
        self, span: Literal["step", "microbatch", "epoch"], index: int, source: StateSource
    ) -> None:
        """A step closes. After the last one the script ends, on all ranks at the same place."""
        if span != "step" or index < 2 or self._over:
            return
        self._close_step(index - 1, source)
        if index > self._orders.steps:
            self._finish(source)
            raise SystemExit(0)

    def finish(self, source: StateSource) -> None:
        """The script ended by itself."""
        if not self._over:
            if source.context.step:
                self._close_step(source.context.step, source)
            self._finish(source)

    # --- what is done ---------------------------------------------------------------------------

    @property
    def _kinds(self) -> tuple[str, ...]:
        return self._orders.kinds

    def _is_followed(self, call: WatchedCall) -> bool:
        """A training pass of a module with a name.

        Of what is computed again for a backward pass it is the first one, if that made a graph: a
        reentrant checkpoint, as Megatron's, makes none.
        """
        module, now = call.fields.get("module"), call.context
        if not isinstance(module, Ref) or not torch.is_grad_enabled():
            return False
        of = TensorName("outputs", module.name, now.step, now.microbatch)
        if _is_forward():
            self._passed.add(of)
            return True
        return of not in self._passed

    def _enters(self, call: WatchedCall) -> None:
        tensors = _tensors(call.fields.get("inputs"))
        self._perturb(tensors, call)
        name = self._name("outputs", call.fields["module"].name, call)
        self._names[call.id] = name
        first = next(iter(tensors), None)
        if name.name not in self._modules:
            self._modules[name.name] = self._described(call, first)
        given = replace(name, kind="inputs")
        if isinstance(first, Tensor) and first not in self._held:  # else it is followed already
            self._follow_back("input_grads", name, first)
        self._passes(given, first)

    def _described(self, call: WatchedCall, first: Any) -> ModuleCall:
        at, parent = call.fields, call.parent
        while parent is not None and not isinstance(parent.fields.get("module"), Ref):
            parent = parent.parent
        line = call.location
        written = isinstance(at["file"], str)  # else `forward` is cached, or not written in Python
        return ModuleCall(
            kind=at["class"],
            parent="" if parent is None else parent.fields["module"].name,
            defined=f"{_shown(at['file'])}:{at['line']}" if written else "",
            called="" if line is None else f"{line.file}:{line.line}",
            takes=self._held.get(first, ()) if isinstance(first, Tensor) else (),
            numbers=isinstance(first, Tensor) and first.is_floating_point(),
        )

    def _returns(self, name: TensorName, output: Any) -> None:
        """Note whose output a module returns as it is."""
        kind, of = (isinstance(output, Tensor) and self._held.get(output)) or ("", "")
        returns = of if kind == "outputs" else ""
        self._modules[name.name] = replace(self._modules[name.name], returns=returns)

    def _passes(self, name: TensorName, value: Any) -> None:
        """A tensor goes into a module or comes out of it."""
        self._record(name, value)
        if isinstance(value, Tensor):
            self._held[value] = (name.kind, name.name)
            self._rewrite(name, value.data)

    def _follow_back(self, kind: str, name: TensorName, value: Any) -> None:
        """The gradient of a tensor that goes into a module or comes out of it."""
        if isinstance(value, Tensor) and value.requires_grad and kind in self._kinds:
            of = replace(name, kind=kind)
            value.register_hook(lambda grad: self._flows_back(of, grad))  # type: ignore[no-untyped-call]

    def _flows_back(self, name: TensorName, gradient: Tensor) -> Tensor | None:
        """The gradient of an output; what goes on backwards instead of it, if that is another one."""
        self._record(name, gradient)
        if name not in self._orders.rewrites:
            return None
        changed = gradient.clone()
        self._rewrite(name, changed)
        return changed

    def _rewrite(self, name: TensorName, tensor: Tensor) -> None:
        """Give a tensor the elements that the orders say; autograd does not see it."""
        wanted = self._orders.rewrites.get(name)
        held = None if wanted is None else held_here(tensor)
        if wanted is not None and held is not None and _is_writable(held, wanted):
            held.copy_(wanted)

    def _name(self, kind: str, name: str, call: WatchedCall) -> TensorName:
        """The name of what a call makes: the next one of that module in the micro-batch."""
        now = call.context
        first = TensorName(kind, name, now.step, now.microbatch)
        self._calls[first] += 1
        number = self._calls[first] - 1
        return TensorName(kind, name, now.step, now.microbatch, number)

    def _record(self, name: TensorName, value: Any) -> None:
        self._progress.reached(str(name))
        if name.kind not in (*self._kinds, "initial") or not isinstance(value, Tensor):
            return
        held = held_here(value)
        if held is None:
            return
        sketching = self._orders.sketching
        if sketching is None or name.kind in NUMBERS or name in sketching.full:
            self._tensors[name] = held.clone()
        else:
            self._sketch(name, held, sketching)

    def _sketch(self, name: TensorName, held: Tensor, sketching: Sketching) -> None:
        shape = tuple(held.shape)
        of, cut = name.name, whole(shape)
        if sketching.cuts is not None:
            if name not in sketching.cuts:  # it has no place
                return
            of, cut = sketching.cuts[name]
        part = self._parts.get(name.subject) if name.kind in UPDATED else None
        cut = cut if part is None else replace(cut, flat=part)
        bits = _bits(held) if name.kind in EXACT else 0
        self._sketched[name] = Sketched(shape, str(held.dtype).removeprefix("torch."), bits)
        fits = cut.shape == shape  # else the comparison tells of the shape
        self._tensors[name] = sketch(of, cut, held, self._draws) if fits else held.new_empty(0)

    @property
    def _follows_updates(self) -> bool:
        """Of the reference it is recorded how far its parameters may be off, which sketches do not tell."""
        orders = self._orders
        is_reference = orders.sketching is not None and orders.sketching.cuts is None
        return is_reference and orders.perturbation is None and "params" in orders.kinds

    def _record_update(self, name: str, step: int, tensor: Tensor) -> None:
        """How large the update of a parameter was where its gradient was how large."""
        before, gradient = self._before.get(name), self._gradients.get(name)
        if before is not None and gradient is not None and len(before.view(-1)) == gradient.numel():
            made = spread(tensor.double() - before.double(), gradient)
            self._tensors[TensorName("updates", name, step)] = made
        self._before[name] = tensor.clone()

    def _record_loss(self, call: WatchedCall, loss: Any) -> None:
        if isinstance(loss, Tensor) and loss.numel() == 1:  # else the output of a stage
            self._record(self._name("losses", "loss", call), loss)

    def _record_gradients(self, source: StateSource, field: str) -> None:
        """The gradients that an update reads, in the parameter's shape where they are all of it."""
        whole = source.fields("parameter", "data")
        for name, gradient in source.fields("parameter", field).items():
            if isinstance(gradient, Tensor):
                held = _in_shape_of(whole[name], gradient)
                self._record(TensorName("param_grads", name, source.context.step), held)
                local = held_here(held) if self._follows_updates else None
                if local is not None:
                    self._gradients[name] = local.clone()

    def _note_norm(self, call: WatchedCall) -> None:
        """Keep the norm of all gradients until these are recorded. Of a DTensor each rank has a part of it."""
        norm = call.fields.get("norm") if "gradient_norms" in self._kinds else None
        if isinstance(norm, Tensor):
            whole = getattr(norm, "full_tensor", None)
            self._norms.append((norm.detach() if whole is None else whole().detach()).clone())
        elif isinstance(norm, float):
            self._norms.append(torch.tensor(norm))

    def _record_norms(self, call: WatchedCall) -> None:
        """The norms that were computed for an update."""
        now = TensorName("gradient_norms", "norm", call.context.step)
        for norm in self._norms:
            self._record(replace(now, call=self._calls[now]), norm)
            self._calls[now] += 1
        self._norms.clear()

    def _record_first_states(self, call: WatchedCall, source: StateSource) -> None:
        """What an optimizer keeps before its first update, as a checkpoint gave it."""
        optimizer = call.fields.get("optimizer")
        if "states" not in self._kinds or not isinstance(optimizer, Ref):
            return
        if optimizer not in self._copies:
            self._copies[optimizer] = _copies(source)  # later Megatron's groups may be gone
            held = source.fields("optimizer", "parameters")[optimizer.name]
            self._record_states(source, 0, held)

    def _note_owner(self, call: WatchedCall, source: StateSource) -> None:
        """Note of which parameters this rank makes the update. Each rank's own optimizer, in that of `ZeroRedundancyOptimizer`, has some."""
        optimizer = call.fields.get("optimizer")
        if not isinstance(optimizer, Ref):
            return
        held = source.fields("optimizer", "parameters")[optimizer.name]
        self._updates[optimizer] = frozenset(each.name for each in held)
        outer = call.parent
        while outer is not None:
            other = outer.fields.get("optimizer")
            if isinstance(other, Ref) and other != optimizer:
                self._updates[other] = frozenset()
            outer = outer.parent

    def _elsewhere(self, source: StateSource) -> frozenset[str]:
        """The parameters that an optimizer of this rank holds, and that another rank updates."""
        held = source.fields("optimizer", "parameters")
        named = {each.name for optimizer in self._updates for each in held.get(optimizer.name, ())}
        return frozenset(named.difference(*self._updates.values()))

    def _record_states(
        self, source: StateSource, step: int, of: frozenset[Ref] | None = None
    ) -> None:
        """What optimizers keep for parameters, in the parameter's shape where it is of all elements; `of` names some."""
        whole = source.fields("parameter", "data")
        models = {copy: name for each in self._copies.values() for copy, name in each.items()}
        keys, held = source.fields("state", "name"), source.fields("state", "data")
        for state, parameter in source.fields("state", "parameter").items():
            if of is None or parameter in of:
                name = models.get(parameter.name, parameter.name)
                tensor = _in_shape_of(whole[name], held[state])
                self._record(TensorName("states", f"{name}.{keys[state]}", step), tensor)

    def _record_parts(self, source: StateSource) -> None:
        """Which elements of each gradient this rank updates from, where those are not all."""
        shards = source.fields("parameter", "shard")
        for name, tensor in source.fields("parameter", "data").items():
            part = shards.get(name)
            if not isinstance(part, Tensor):
                self._parts[name] = (0, 0)
            elif part.numel() < tensor.numel():
                first = int(part.storage_offset() - tensor.storage_offset())
                self._parts[name] = (first, first + part.numel())

    def _close_step(self, step: int, source: StateSource) -> None:
        if "states" in self._kinds:  # parameters are updated from them
            self._record_states(source, step)
        for kind, entity in (("params", "parameter"), ("buffers", "buffer")):
            for name, value in source.fields(entity, "data").items():
                self._record(TensorName(kind, name, step), value)
                local = held_here(value) if isinstance(value, Tensor) else None
                if kind == "params" and self._follows_updates and local is not None:
                    self._record_update(name, step, local)

    def _finish(self, source: StateSource) -> None:
        self._over = True
        recording = Recording(
            tensors=self._tensors,
            filled=self._filled,
            modules=self._modules,
            parts=self._parts,
            sketched=self._sketched,
            elsewhere=self._elsewhere(source),
        )
        write(self._folder, source.rank, recording)
        self._progress.reached("its end")
        self._progress.close()

    # --- the same numbers -----------------------------------------------------------------------

    def _set_weights(self, source: StateSource) -> None:
        """Give parameters that were not there before their generated values, and record them."""
        found = source.fields("parameter", "data")
        if len(found) == len(self._known):
            return
        for name, tensor in found.items():
            held = None if isinstance(tensor, Missing) else held_here(tensor)
            if name not in self._known and held is not None:
                self._known.add(name)
                self._generate(name, held)
                self._rewrite(TensorName("initial", name, 0), tensor.data)
                self._record(TensorName("initial", name, 0), tensor)
                if self._follows_updates:
                    self._before[name] = held.clone()

    def _generate(self, name: str, tensor: Tensor) -> None:
        orders = self._orders
        if orders.seed is None or not tensor.is_floating_point():
            return
        if orders.cuts is None:
            cut, mean = whole(tuple(tensor.shape)), filled_with(tensor)
            self._filled[name] = mean
        elif name in orders.cuts:
            cut, mean = orders.cuts[name]
        else:
            return
        if cut.shape == tuple(tensor.shape):  # else the comparison tells of the shape
            with torch.no_grad():
                tensor.copy_(weights(orders.seed, name, cut, mean))

    def _perturb(self, tensors: list[Any], call: WatchedCall) -> None:
        """Change the first floating tensors that flow in an outermost call: its inputs, or the first output.

        Under autocast so is the first one of each coarser dtype: what is computed from there on is rounded to that.
        """
        perturbation = self._orders.perturbation
        floating = [t for t in tensors if isinstance(t, Tensor) and t.is_floating_point()]
        if perturbation is None or not floating or not _is_forward():
            return
        of, coarsest = self._perturbed or (0, 0.0)
        outermost = _outermost(call).id
        if of != outermost:
            coarsest = 0.0
        epsilon = max(perturbation.epsilon or torch.finfo(each.dtype).eps for each in floating)
        if epsilon <= coarsest:
            return
        self._perturbed = outermost, epsilon
        for number, tensor in enumerate(floating):
            now = call.context
            place = f"{now.step} {now.microbatch} {number}"
            of = key(self._orders.seed or 0, "perturb", str(perturbation.sample), place)
            epsilon = perturbation.epsilon or torch.finfo(tensor.dtype).eps
            factor = 1 + epsilon * signs(of, whole(tuple(tensor.shape)).positions())
            data = tensor.data  # autograd does not see it: a view may have been saved
            data.copy_(data.double() * factor.to(data.device))


def _is_forward() -> bool:
    """No backward pass is under way, so that nothing is computed again for it."""
    return bool(torch._C._current_graph_task_id() == -1)


def held_here(tensor: Tensor) -> Tensor | None:
    """What this rank holds of a tensor; a collective that is under way in it is waited for."""
    local = getattr(tensor, "_local_tensor", tensor)
    wait = getattr(local, "trigger_wait", None)
    return local_part(local if wait is None else wait())


def _in_shape_of(whole: Tensor, tensor: Tensor) -> Tensor:
    """A flat tensor in the shape of a parameter, if it has as many elements."""
    is_flat = tensor.shape != whole.shape and tensor.numel() == whole.numel()
    return tensor.view_as(whole) if is_flat else tensor


def _copies(source: StateSource) -> dict[str, str]:
    """The parameters of the model that optimizers have copies or parts of: the optimizer's name -> the model's.

    Megatron's update a copy in float32, or a view of what the rank updates.
    """
    places = {
        (held.data_ptr(), held.numel()): name
        for field in ("shard", "main")
        for name, held in source.fields("parameter", field).items()
        if isinstance(held, Tensor) and held.numel()
    }
    parameters = source.fields("parameter", "data").items() if places else ()
    found = ((name, (tensor.data_ptr(), tensor.numel())) for name, tensor in parameters)
    return {name: places[place] for name, place in found if place in places}


def _bits(tensor: Tensor) -> int:
    """64 bits of all elements and their order; -0.0 is 0.0, but of dtypes of one byte, which have no addition."""
    return int(digests([tensor if tensor.itemsize == 1 else tensor + 0]))


def filled_with(tensor: Tensor) -> float:
    """The number that fills a vector; 0 if it holds several."""
    first = tensor.detach().flatten()[:1]
    return float(first) if tensor.numel() and bool((tensor == first).all()) else 0.0


def _tensors(field: Any) -> list[Any]:
    return list(field) if isinstance(field, tuple) else []


def _shown(file: str) -> str:
    """A path from the working folder on, or from the folder of installed packages."""
    path = Path(file)
    if path.is_relative_to(Path.cwd()) and "site-packages" not in path.parts:
        return path.relative_to(Path.cwd()).as_posix()
    return file.rpartition("/site-packages/")[2]


def _is_writable(tensor: Tensor, wanted: Tensor) -> bool:
    """Of that shape, each element in a place of its own."""
    own = all(
        stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1
    )
    return tensor.shape == wanted.shape and own


def _outermost(call: WatchedCall) -> WatchedCall:
    while call.parent is not None:
        call = call.parent
    return call

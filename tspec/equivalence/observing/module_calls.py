"""Calls of modules: their inputs and outputs, and the gradients of both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils.weak import WeakIdKeyDictionary

from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.observing.perturber import Perturber, is_forward
from tspec.equivalence.observing.recorder import TensorRecorder
from tspec.equivalence.recording import ModuleCall, ModuleInput, TensorName
from tspec.runtime.edges import Ref, StateSource, WatchedCall

MOST_LINES = 32
"""The greatest number of later calls of a module within a micro-batch whose lines are kept."""


@dataclass(frozen=True, slots=True)
class _Running:
    """A module call in progress: the name of its output, and the names that its inputs had before."""

    name: TensorName
    given: list[tuple[Tensor, tuple[str, str] | None]]


@dataclass(slots=True)
class _Draws:
    """A module call in progress: its number, the module, and the states of the default generators
    when it began. `noted` is true once a module that it called drew random numbers.
    """

    call: int
    name: str
    states: tuple[Tensor, ...]
    noted: bool = False


class ModuleCalls:
    """Records and rewrites inputs, outputs and their gradients; notes each module's caller and
    arguments.
    """

    def __init__(self, orders: Orders, recorder: TensorRecorder) -> None:
        self._orders = orders
        self._recorder = recorder
        self._perturber = Perturber(orders)
        self._passed: set[TensorName] = set()
        """Outputs of modules whose forward pass built a graph."""
        self._running: dict[int, _Running] = {}
        """The calls that have not returned, by id."""
        self._held: Any = WeakIdKeyDictionary()
        """Tensor -> kind and name: an input of the innermost module that is running and was given it, else an output."""
        self._seen: Any = WeakIdKeyDictionary()
        """Tensor -> True once it was given to a module, or came out of one: its gradient is recorded once."""
        self.modules: dict[str, ModuleCall] = {}
        self._draws: list[_Draws] = []
        """The module calls in progress, outermost first."""
        self.drawing: set[str] = set()
        """Modules whose own code drew random numbers in a forward pass."""
        self.undropped: set[str] = set()
        """Modules in whose own code dropout was switched off."""

    def dropped(self) -> None:
        """Dropout was switched off in a call of the innermost module that is running."""
        self.undropped.add(self._draws[-1].name if self._draws else "")

    def begins(self, call: WatchedCall) -> None:
        """A module is called."""
        module = _module(call)
        if module is None or not self._is_followed(call):
            return
        tensors = tensors_of(call.fields.get("inputs"))
        self._perturber.perturb(tensors, call)
        name = self._recorder.name("outputs", module.name, call)
        given = dict(zip(_names(name.name, call), tensors, strict=False))
        known = self.modules.get(name.name)
        if known is None:
            self.modules[name.name] = self._described(call, given)
        elif name.call == len(known.again) + 1 <= MOST_LINES:
            again = (*known.again, _line(call))
            self.modules[name.name] = replace(known, again=again)
        before = [(tensor, self._held.get(tensor)) for tensor in given.values()]
        self._running[call.id] = _Running(name, before)
        self._draws.append(_Draws(call.id, name.name, _random_states()))
        self._hands(replace(name, kind="inputs"), given)

    def ends(self, call: WatchedCall) -> None:
        """A call returned."""
        running = self._running.pop(call.id, None)
        if running is None:
            return
        name = running.name
        self._note_draws(call)
        for tensor, known in running.given:
            if known is None:
                self._held.pop(tensor, None)
            else:
                self._held[tensor] = known
        output = call.fields.get("output")
        self._gives_back(call, name, output)
        self._perturber.perturb([output], call)
        self._returns(name, output, tensors_of(call.fields.get("made")))
        self._made(name, output)
        self._follow_back("output_grads", name, output)

    def described(self, source: StateSource) -> dict[str, ModuleCall]:
        """The first call of each module, with the parameters that it shares with another one."""
        held = source.fields("module", "parameters")
        return {
            name: replace(call, shares=tuple(sorted(_of_others(name, held.get(name)))))
            for name, call in self.modules.items()
        }

    def _note_draws(self, call: WatchedCall) -> None:
        """Note a module that drew random numbers itself, or called a function that did."""
        while self._draws and self._draws[-1].call != call.id:
            self._draws.pop()  # a call that ended by an exception
        if not self._draws:
            return
        ended = self._draws.pop()
        if not _are_equal(ended.states, _random_states()):
            if not ended.noted:
                self.drawing.add(ended.name)
            if self._draws:
                self._draws[-1].noted = True

    def _is_followed(self, call: WatchedCall) -> bool:
        """True for a training pass of a module with a name.

        If a forward pass is recomputed for the backward pass, the first pass counts if it built a
        graph. A reentrant checkpoint, such as Megatron's, builds none.
        """
        module, now = _module(call), call.context
        if module is None or not torch.is_grad_enabled():
            return False
        of = TensorName("outputs", module.name, now.step, now.microbatch)
        if is_forward():
            self._passed.add(of)
            return True
        return of not in self._passed

    def _has_a_place(self, name: str) -> bool:
        """True if the layout places an input that is not the first of its module."""
        return any(re.fullmatch(each, name) for each in self._orders.further)

    def _described(self, call: WatchedCall, given: Mapping[str, Tensor]) -> ModuleCall:
        at, around = call.fields, module_around(call)
        kind, file = at["class"], at["file"]
        return ModuleCall(
            kind=kind if isinstance(kind, str) else "",
            parent="" if around is None else around.name,
            # If the file is unknown, `forward` is cached, or not written in Python.
            defined=f"{_shown(file)}:{at['line']}" if isinstance(file, str) else "",
            called=_line(call),
            inputs=tuple(
                ModuleInput(each, self._held.get(tensor, ()), _is_computed(tensor))
                for each, tensor in given.items()
            ),
        )

    def _hands(self, first: TensorName, given: Mapping[str, Tensor]) -> None:
        """Record the tensors that a module is given. The first one has the module's name."""
        passed: list[Tensor] = []
        for name, tensor in given.items():
            if name != first.name and not self._has_a_place(name):
                continue
            of = replace(first, name=name)
            self._recorder.record(of, tensor)
            if any(tensor is each for each in passed):  # it was rewritten already
                continue
            passed.append(tensor)
            if tensor not in self._seen:
                self._seen[tensor] = True
                self._follow_back("input_grads", of, tensor)
            self._recorder.rewrite(of, tensor.data)
        # A tensor that is given twice keeps its first name.
        for name, tensor in reversed(list(given.items())):
            self._held[tensor] = (first.kind, name)

    def _returns(self, name: TensorName, output: Any, made: Iterable[Any]) -> None:
        """Note the modules whose outputs a module returns unchanged. Its own output of an earlier call, which it may keep, does not count."""
        further = [each for each in made if each is not output]
        returns = "".join(self._makers(name, [output]))
        passes_on = tuple(dict.fromkeys(self._makers(name, further)))
        known = self.modules[name.name]
        self.modules[name.name] = replace(known, returns=returns, passes_on=passes_on)

    def _gives_back(self, call: WatchedCall, name: TensorName, output: Any) -> None:
        """Note which of its own inputs a module returns unchanged."""
        inputs = tensors_of(call.fields.get("inputs"))
        names = (
            of for of, each in zip(_names(name.name, call), inputs, strict=False) if each is output
        )
        known = self.modules[name.name]
        self.modules[name.name] = replace(known, gives_back=next(names, ""))

    def _makers(self, name: TensorName, tensors: Iterable[Any]) -> Iterator[str]:
        """The other modules that produced some tensors as outputs."""
        for each in tensors:
            kind, of = (isinstance(each, Tensor) and self._held.get(each)) or ("", "")
            if kind == "outputs" and of != name.name:
                yield of

    def _made(self, name: TensorName, value: Any) -> None:
        """A tensor comes out of a module."""
        self._recorder.record(name, value)
        if isinstance(value, Tensor):
            self._held[value] = (name.kind, name.name)
            self._seen[value] = True
            self._recorder.rewrite(name, value.data)

    def _follow_back(self, kind: str, name: TensorName, value: Any) -> None:
        """The gradient of a tensor that goes into a module or comes out of it."""
        if isinstance(value, Tensor) and value.requires_grad and kind in self._orders.kinds:
            of = replace(name, kind=kind)
            value.register_hook(lambda grad: self._flows_back(of, grad))  # type: ignore[no-untyped-call]

    def _flows_back(self, name: TensorName, gradient: Tensor) -> Tensor | None:
        """Record the gradient of an output. Returns a replacement if the orders rewrite it."""
        self._recorder.record(name, gradient)
        if name not in self._orders.rewrites:
            return None
        changed = gradient.clone()
        self._recorder.rewrite(name, changed)
        return changed


def given_to(call: WatchedCall) -> dict[str, Tensor]:
    """The tensors that a module or a loss is given, by their canonical names as inputs."""
    if call.event == "target":
        target = call.fields.get("target")
        name = f"{call.callable.rpartition('.')[2]}[target]"
        return {name: target} if isinstance(target, Tensor) else {}
    module = _module(call)
    if module is None:
        return {}
    tensors = tensors_of(call.fields.get("inputs"))
    return dict(zip(_names(module.name, call), tensors, strict=False))


def _of_others(module: str, parameters: Any) -> Iterator[str]:
    """The parameters in a module whose names are those of another module."""
    held = parameters if isinstance(parameters, frozenset) else ()
    return (each.name for each in held if not each.name.startswith(f"{module}."))


def module_around(call: WatchedCall) -> Ref | None:
    """The module whose code makes a call, wrappers left out; None if none does."""
    around, parent = None, call.parent
    while parent is not None and around is None:
        around, parent = _module(parent), parent.parent
    return around


def tensors_of(field: Any) -> list[Any]:
    """The elements of a field of several tensors, or of several names; empty if it is missing."""
    return list(field) if isinstance(field, tuple) else []


def _random_states() -> tuple[Tensor, ...]:
    """The states of torch's default generators."""
    found = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        found.append(torch.cuda.get_rng_state())
    return tuple(found)


def _are_equal(states: tuple[Tensor, ...], others: tuple[Tensor, ...]) -> bool:
    return all(map(torch.equal, states, others))


def _module(call: WatchedCall) -> Ref | None:
    """The module that is called; None of a call of something else."""
    module = call.fields.get("module")
    return module if isinstance(module, Ref) else None


def _names(module: str, call: WatchedCall) -> Iterator[str]:
    """The names of the tensors that a module is given: its own for the first one."""
    yield module
    yield from (f"{module}[{each}]" for each in tensors_of(call.fields.get("arguments"))[1:])


def _is_computed(tensor: Tensor) -> bool:
    """True if the tensor is floating and no parameter."""
    return tensor.is_floating_point() and not isinstance(tensor, Parameter)


def _line(call: WatchedCall) -> str:
    """The line of the script that led to a call; empty if unknown."""
    return "" if call.location is None else f"{call.location.file}:{call.location.line}"


def _shown(file: str) -> str:
    """A path from the working folder on, or from the folder of installed packages."""
    path = Path(file)
    if path.is_relative_to(Path.cwd()) and "site-packages" not in path.parts:
        return path.relative_to(Path.cwd()).as_posix()
    return file.rpartition("/site-packages/")[2]

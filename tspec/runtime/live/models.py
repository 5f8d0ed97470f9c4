"""The modules and parameters of a job, under names that are the same on every rank and in every
run.

A *root* is a module that the training loop calls from outside (or the largest built module around
it), or one that a model calls and does not hold. Its parameters have the names in its `state_dict`;
further roots get their class as a prefix. Names are provisional until the first step opens: then
the trained model gets the names without a prefix. DDP, FSDP and `torch.compile` are wrappers, not
modules of their own: their prefixes are left out.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tspec.runtime.live.identity import IdentitySet

_INNER = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "module")
_WRAPPERS = {
    "DistributedDataParallel", "DataParallel", "OptimizedModule", "FullyShardedDataParallel",
    "CheckpointWrapper", "ActivationWrapper", "OffloadWrapper", "Float16Module",
}  # fmt: skip


def inner(module: nn.Module) -> nn.Module | None:
    """The module that a wrapper wraps, or None if `module` is no wrapper."""
    if not _wraps(type(module)):  # type: ignore[arg-type]
        return None
    for name in _INNER:
        held: nn.Module | None = table(module, "_modules").get(name)
        if held is not None:
            return held
    return None


def _own_class(module: nn.Module) -> type:
    """The class that the module had before `fully_shard` gave it one that is derived from it."""
    kind = type(module)
    while len(kind.__bases__) == 2 and kind.__bases__[0].__name__ == "FSDPModule":
        kind = kind.__bases__[1]
    return kind


def table(
    module: nn.Module, name: Literal["_modules", "_parameters", "_buffers"]
) -> Mapping[str, Any]:
    """One of a module's own tables, empty before `nn.Module.__init__` has run.

    Reads the instance dictionary: a class may override `parameters` and `__getattr__`, which may
    fail before its own constructor has returned. That of a scripted module is no mapping: it has `items` and `values`.
    """
    found: Mapping[str, Any] | None = vars(module).get(name)
    return {} if found is None else found


def parameters_of(module: nn.Module) -> Iterator[torch.Tensor]:
    """The parameters of a module and all modules in it, each under every name that it has."""
    for _, held in walk(module):
        for parameter in table(held, "_parameters").values():
            if parameter is not None:
                yield parameter


def has_parameters(module: nn.Module) -> bool:
    """The module or one in it holds a parameter."""
    return next(parameters_of(module), None) is not None


def trains(module: nn.Module) -> bool:
    """The module is in training mode; one that does not say is, as torch's are by default."""
    try:
        return bool(module.training)
    except Exception:  # a property of the user's class may raise anything
        return True


@lru_cache(maxsize=4096)
def _wraps(kind: type) -> bool:
    return any(base.__name__ in _WRAPPERS for base in kind.__mro__[:-1])


def unwrapped(module: nn.Module) -> nn.Module:
    """The module inside all wrappers around it."""
    held = inner(module)
    while held is not None:
        module, held = held, inner(held)
    return module


def walk(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Every module under all its names, wrappers left out, parents first.

    A module that lies in itself is not entered again.
    """
    module = unwrapped(module)
    yield "", module
    around = {id(module)}
    entered = [("", module, iter(table(module, "_modules").items()))]
    while entered:
        prefix, module, children = entered[-1]
        for name, child in children:
            if child is None:
                continue
            child = unwrapped(child)
            if id(child) in around:
                continue
            path = f"{prefix}{name}"
            yield path, child
            around.add(id(child))
            entered.append((f"{path}.", child, iter(table(child, "_modules").items())))
            break
        else:
            around.discard(id(module))
            entered.pop()


Naming = Callable[[str], str]
_Parameters = Mapping[str, weakref.ref[torch.Tensor]]
"""Parameters by their canonical names."""


@dataclass(slots=True)
class RootModule:
    """An outermost module. `prefix` stands before its names; `title` is its own name."""

    module: weakref.ref[nn.Module]
    prefix: str
    title: str
    naming: Naming = str
    """From paths in the module to paths in the whole model; the module may be a part of it. From the empty path to
    the module's own title, empty where that is its class."""

    def name(self, path: str) -> str:
        """The canonical name of the thing at a path in the module."""
        return f"{self.prefix}{self.naming(path)}" if path else self.title


@dataclass(slots=True)
class NamedParameter:
    """One parameter object, its canonical name, and all names that modules have for it."""

    name: str
    tensor: torch.Tensor
    names: list[str]
    module: str | None


@dataclass(slots=True)
class NameTables:
    """The contents of the roots at one instant. Keys of `by_id` are ids of live objects."""

    parameters: dict[str, NamedParameter] = field(default_factory=dict)
    parameter_by_id: dict[int, str] = field(default_factory=dict)
    parameter_at: dict[tuple[int, str], str] = field(default_factory=dict)
    """(module, key in it) -> parameter, even while another tensor is stored there."""
    buffers: dict[str, tuple[torch.Tensor, str]] = field(default_factory=dict)
    buffer_by_id: dict[int, str] = field(default_factory=dict)
    modules: dict[str, nn.Module] = field(default_factory=dict)
    module_by_id: dict[int, str] = field(default_factory=dict)
    next_module: dict[str, str] = field(default_factory=dict)
    elements: set[str] = field(default_factory=set)
    """Modules that are elements of lists of modules."""
    in_lists: set[str] = field(default_factory=set)
    """These, and the modules that they hold."""
    titles: dict[str, str] = field(default_factory=dict)
    """Titles of root modules -> their prefixes."""


class ModelRegistry:
    """Root modules in naming order (first trained, then by first call), with tables of their
    parameters, buffers and modules.
    """

    def __init__(self) -> None:
        self.naming_of: Callable[[nn.Module], Naming | None] = lambda module: None
        """The naming of a framework for the contents of a root; None for a module that is no model
        of that framework.
        """
        self.roots: list[RootModule] = []
        self._tables = NameTables()
        self._stale = False
        """A module holds other tensors than before: the tables are made anew before they are read."""
        self.version = 0
        """Incremented whenever the contents of the tables change."""
        self.built: IdentitySet[nn.Module] = IdentitySet()
        """Modules whose `nn.Module.__init__` has returned; the constructor of their own class may still run."""
        self.called: IdentitySet[nn.Module] = IdentitySet()
        """Modules whose forward pass was begun, and roots with a part that was called from outside.
        """
        self._unregistered: IdentitySet[nn.Module] = IdentitySet()
        """Modules that another model called and does not hold, such as layers in a plain list."""
        self._free: dict[int, tuple[str, weakref.ref[torch.Tensor]]] = {}
        self._settled = False
        """The first step has opened: roots keep their names, also when their modules are gone."""
        self._shape: tuple[tuple[str, int], ...] = ()

    @property
    def tables(self) -> NameTables:
        """The contents of the roots, by name."""
        if self._stale:
            self.refresh()
        return self._tables

    def replaced(self) -> None:
        """Tensors of a module were replaced, as `load_state_dict(assign=True)` does."""
        self._stale = True

    def called_from_outside(self, module: nn.Module) -> None:
        """A module was called while none other was running: it is a root, or part of one."""
        module = unwrapped(module)
        known = module in self.called
        self.called.add(module)
        if id(module) not in self.tables.module_by_id:
            self.refresh()
        if id(module) not in self.tables.module_by_id:
            self.add_root(self._largest_around(module))
        elif not known:
            self._call_roots_around(module)

    def called_from_within(self, module: nn.Module) -> None:
        """A module was called for the first time while another was running: a root if no model holds it.

        Layers in a plain list are such, as `parameters()`, `train()` and `state_dict()` do not see them.
        """
        module = unwrapped(module)
        if id(module) in self.tables.module_by_id or not has_parameters(module):
            return
        self.refresh()
        if id(module) not in self.tables.module_by_id:
            self.called.add(module)
            self._unregistered.add(module)
            self.add_root(module)

    def add_root(self, module: nn.Module) -> None:
        """Make a module a root, unless it is part of one."""
        module = unwrapped(module)
        if id(module) in self.tables.module_by_id:
            return
        if not self._settled:
            self.roots = self._named_anew(self._alive())
        self.roots.append(self._root(module, self.roots))
        self.refresh()
        if any(held in self.called for _, held in walk(module)):
            self.called.add(module)

    def training_begins(self, trained: Iterable[torch.Tensor]) -> None:
        """The first step opens: the trained model gets no prefix, and names are final from now on.

        `trained` are the parameters that optimizers hold, in the optimizers' order. Models that
        were loaded or called earlier, such as an average of the weights, are named after the
        trained model. Later calls do nothing.
        """
        if self._settled:
            return
        self._settled = True
        ids = [id(tensor) for tensor in trained]
        modules = self._alive()
        held = {id(m): {id(p) for p in parameters_of(m)} for m in modules}
        with_parameters = [m for m in modules if held[id(m)]]
        if with_parameters and held[id(with_parameters[0])].isdisjoint(ids):
            first = next((m for each in ids for m in modules if each in held[id(m)]), None)
            if first is not None:
                modules = [first, *(m for m in modules if m is not first)]
        self.roots = self._named_anew(modules)
        self.refresh()

    def is_root(self, module: nn.Module) -> bool:
        """The module is an outermost one."""
        return any(root.module() is module for root in self.roots)

    def _alive(self) -> list[nn.Module]:
        """The modules of the roots that the script still holds."""
        modules = (root.module() for root in self.roots)
        return [module for module in modules if module is not None]

    def _named_anew(self, modules: Iterable[nn.Module]) -> list[RootModule]:
        roots: list[RootModule] = []
        for module in modules:
            roots.append(self._root(module, roots))
        return roots

    def _root(self, module: nn.Module, before: Sequence[RootModule]) -> RootModule:
        """The module under the name that it has after these roots."""
        naming = self.naming_of(module)
        kind = (naming("") if naming is not None else "") or _own_class(module).__name__
        titles = {root.title for root in before}
        title, count = kind, 1
        while title in titles:
            count += 1
            title = f"{kind}#{count}"
        first = has_parameters(module) and not any(root.prefix == "" for root in before)
        prefix = "" if first or naming is not None else f"{title}."
        return RootModule(weakref.ref(module), prefix, title, naming or str)

    def _call_roots_around(self, module: nn.Module) -> None:
        """A loop may call the parts of a model and never the model, as Lightning's `training_step` does."""
        for around in self._alive():
            if any(held is module for _, held in walk(around)):
                self.called.add(around)

    def handed_over(self, module: nn.Module) -> None:
        """A module was given to a function that is watched: the largest built one around it is a root."""
        if id(unwrapped(module)) not in self.tables.module_by_id:
            self.add_root(self._largest_around(unwrapped(module)))

    def holding(self, tensor: torch.Tensor) -> None:
        """Make the built module that holds a parameter a root, if one is alive and none is known."""
        if id(tensor) in self.tables.parameter_by_id or id(tensor) in self._free:
            return
        around = self._largest(
            lambda held: any(tensor is p for p in table(held, "_parameters").values())
        )
        if around is not None:
            self.add_root(around)

    def _largest_around(self, module: nn.Module) -> nn.Module:
        """The built module that holds this one and most others; the module itself if none does."""
        return self._largest(lambda held: held is module) or module

    def _largest(self, holds: Callable[[nn.Module], bool]) -> nn.Module | None:
        best: nn.Module | None = None
        size = 0
        for other in sorted(self.built.alive(), key=id):
            if inner(other) is not None or id(other) in self.tables.module_by_id:
                continue
            held = [each for _, each in walk(other)]
            if len(held) > size and any(holds(each) for each in held):
                best, size = other, len(held)
        return best

    def refresh(self) -> None:
        """Look at the roots again: layers may have been replaced, and models let go.

        The last tables go first: they are all that may still hold a model that the script has dropped. For the time of a
        pass other tensors may stand in the places of parameters (`FullyShardedDataParallel` with original parameters,
        `functional_call`). The places keep the parameters that were there.
        """
        last = {name: weakref.ref(each.tensor) for name, each in self._tables.parameters.items()}
        tables = self._tables = NameTables()
        self._stale = False
        for root in self.roots:
            module = root.module()
            if module is not None:
                _fill(tables, module, root, last)
        shape = tuple((name, id(each.tensor)) for name, each in tables.parameters.items())
        shape += tuple((name, id(module)) for name, module in tables.modules.items())
        if shape != self._shape:
            self._shape = shape
            self.version += 1

    def name_of_parameter(self, tensor: torch.Tensor) -> str | None:
        """The canonical name of a parameter, of a model or of an optimizer alone; None if unknown."""
        name = self.tables.parameter_by_id.get(id(tensor))
        if name is not None:
            return name
        free = self._free.get(id(tensor))
        return free[0] if free is not None and free[1]() is tensor else None

    def is_registered(self, tensor: torch.Tensor) -> bool:
        """True if a model holds a parameter: one that a loop calls, and not a layer that a model
        calls without holding it.
        """
        return self.name_of_parameter(tensor) is not None and not any(
            each is tensor for module in self._unregistered.alive() for each in module.parameters()
        )

    def is_attribute(self, tensor: torch.Tensor) -> bool:
        """True if a module of a model has the tensor as a plain attribute, which is no parameter
        and no buffer.
        """
        return any(
            each is tensor
            for module in self.tables.modules.values()
            for each in vars(module).values()
        )

    def name_free(self, tensor: torch.Tensor, name: str) -> str:
        """Name a parameter that no model holds; its first name stays."""
        known = self.name_of_parameter(tensor)
        if known is not None:
            return known
        self._free[id(tensor)] = (name, weakref.ref(tensor))
        self.version += 1
        return name

    def parameters(self) -> dict[str, NamedParameter]:
        """All parameters: of models in their order, then those that only optimizers hold."""
        found = dict(self.tables.parameters)
        for name, reference in self._free.values():
            tensor = reference()
            if tensor is not None and id(tensor) not in self.tables.parameter_by_id:
                found.setdefault(name, NamedParameter(name, tensor, [name], None))
        return found

    def paths(self) -> list[dict[str, tuple[str, tuple[int, ...]]]]:
        """For each root: path in it -> canonical name and shape of the parameter."""
        tables = self.tables
        return [
            {
                _within(path, key): (name, tuple(parameter.shape))
                for path, held in walk(module)
                for key, _ in table(held, "_parameters").items()
                if (name := tables.parameter_at.get((id(held), key))) is not None
                and not is_lazy(parameter := tables.parameters[name].tensor)
            }
            for module in self._alive()
        ]

    def parameters_in(self, module: nn.Module) -> frozenset[str]:
        """The canonical names of the parameters of a module and its submodules."""
        known = self.tables.parameter_at
        return frozenset(
            known[id(held), key]
            for _, held in walk(module)
            for key, _ in table(held, "_parameters").items()
            if (id(held), key) in known
        )

    def module_of(self, name: str) -> nn.Module | None:
        """The module of a canonical name."""
        return self.tables.modules.get(name)


def _fill(tables: NameTables, module: nn.Module, root: RootModule, last: _Parameters) -> None:
    tables.titles[root.title] = root.prefix
    for path, held in walk(module):
        name = root.name(path)
        if id(held) not in tables.module_by_id:
            tables.module_by_id[id(held)] = name
            # Parts of one model have containers in common, such as the list of layers.
            tables.modules.setdefault(name, held)
            _fill_elements(tables, name, path, root)
            _fill_next(tables, held, path, root)
        _fill_tensors(tables, held, path, root, last)


def _within(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _fill_elements(tables: NameTables, name: str, path: str, root: RootModule) -> None:
    outer, _, key = path.rpartition(".")
    holder = root.name(outer)
    if path and _is_list(tables.modules.get(holder), key, whole=not outer):
        tables.elements.add(name)
    if name in tables.elements or holder in tables.in_lists:
        tables.in_lists.add(name)


def _is_list(module: nn.Module | None, key: str, *, whole: bool) -> bool:
    """True if the module is a list, of whose elements a step may use some. `key` is the name of one element.

    A `Sequential` is a list unless it is the `whole` model, which uses all of its elements. In a model that was traced,
    lists are plain modules with numbers as keys.
    """
    if isinstance(module, (nn.ModuleList, nn.ModuleDict)):
        return True
    if isinstance(module, nn.Sequential):
        return not whole
    return type(module) is nn.Module and key.isdecimal()


def _fill_next(tables: NameTables, module: nn.Module, path: str, root: RootModule) -> None:
    if isinstance(module, nn.Sequential):
        names = [root.name(_within(path, key)) for key in table(module, "_modules")]
        tables.next_module.update(itertools.pairwise(names))


def _fill_tensors(
    tables: NameTables, module: nn.Module, path: str, root: RootModule, last: _Parameters
) -> None:
    holder = root.name(path)
    for key, held in table(module, "_parameters").items():
        if held is None:
            continue
        name = root.name(_within(path, key))
        stands_in = not isinstance(held, nn.Parameter) and name in last
        stood_there = last[name]() if stands_in else None
        parameter = held if stood_there is None else stood_there
        known = tables.parameter_by_id.setdefault(id(parameter), name)
        tables.parameter_at[id(module), key] = known
        if known not in tables.parameters:
            tables.parameters[name] = NamedParameter(name, parameter, [name], holder)
        elif name not in tables.parameters[known].names:
            tables.parameters[known].names.append(name)
    for key, buffer in table(module, "_buffers").items():
        if buffer is not None and id(buffer) not in tables.buffer_by_id:
            name = root.name(_within(path, key))
            tables.buffer_by_id[id(buffer)] = name
            tables.buffers[name] = (buffer, holder)

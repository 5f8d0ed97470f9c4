"""The modules and parameters of a job, under names that are the same on every rank and in every
run.

A *root* is a module that the training loop calls from outside (or the largest built module around
it), or one that a model calls and does not hold. Its parameters have the names in its `state_dict`;
further roots get their class as a prefix. Names are provisional until the first step opens: then
the trained model gets the names without a prefix. DDP, FSDP and `torch.compile` are wrappers, not
modules of their own: their prefixes are left out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tspec.runtime.live.identity import IdentitySet
from tspec.runtime.live.module_tree import (
    has_parameters,
    inner,
    parameters_of,
    table,
    unwrapped,
    walk,
)
from tspec.runtime.live.name_tables import (
    NamedParameter,
    NameTables,
    Naming,
    RootModule,
    fill,
    path_of,
)


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
        """Modules whose `nn.Module.__init__` has returned, and copies; the constructor of their own class may still run."""
        self.called: IdentitySet[nn.Module] = IdentitySet()
        """Modules whose forward pass was begun, and roots with a part that was called from outside.
        """
        self._from_outside: IdentitySet[nn.Module] = IdentitySet()
        """Modules that were called while none other was running."""
        self._unregistered: IdentitySet[nn.Module] = IdentitySet()
        """Modules that another model called and does not hold, such as layers in a plain list."""
        self._free: dict[int, tuple[str, weakref.ref[torch.Tensor]]] = {}
        self._settled = False
        """The first step has opened: roots keep their names, also when their modules are gone."""
        self._shape: Hashable = None

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
        self._from_outside.add(module)
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

    def is_given_data(self, module: nn.Module) -> bool:
        """The module is an outermost one, or a part with parameters that the script, or a method of
        its model, calls itself.
        """
        if module in self._from_outside:
            return has_parameters(module)
        return self.is_root(module)

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

    def unknown(self) -> list[nn.Module]:
        """The built modules that are in no known model."""
        known = self.tables.module_by_id
        return [
            each for each in self.built.alive() if inner(each) is None and id(each) not in known
        ]

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
                fill(tables, module, root, last)
        shape = _shape(tables)
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
                path_of(path, key): (name, tuple(parameter.shape))
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


def _own_class(module: nn.Module) -> type:
    """The class that the module had before `fully_shard` gave it one that is derived from it."""
    kind = type(module)
    while len(kind.__bases__) == 2 and kind.__bases__[0].__name__ == "FSDPModule":
        kind = kind.__bases__[1]
    return kind


def _shape(tables: NameTables) -> Hashable:
    """Equal for tables of the same objects and classes under the same names, in the same order."""
    tensors = [each.tensor for each in tables.parameters.values()]
    modules = tables.modules.values()
    return (
        *(tuple(tables.parameters), tuple(map(id, tensors))),
        *(tuple(tables.parameter_at), tuple(tables.parameter_at.values())),
        *(tuple(tables.modules), tuple(map(id, modules)), tuple(map(id, map(type, modules)))),
    )

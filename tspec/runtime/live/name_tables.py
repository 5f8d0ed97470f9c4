"""Tables of the contents of root modules by canonical name, and how they are filled."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from tspec.runtime.live.module_tree import table, walk

Naming = Callable[[str], str]


@dataclass(slots=True)
class RootModule:
    """An outermost module. `prefix` stands before its names; `title` is its own name."""

    module: weakref.ref[nn.Module]
    prefix: str
    title: str
    naming: Naming = str
    """From paths in the module to paths in the whole model; the module may be a part of it. From the empty path to
    the module's own title, empty where that is its class."""
    names: dict[str, str] = field(default_factory=dict)
    """The canonical names that were asked for, by path."""

    def name(self, path: str) -> str:
        """The canonical name of the thing at a path in the module."""
        found = self.names.get(path)
        if found is None:
            found = f"{self.prefix}{self.naming(path)}" if path else self.title
            self.names[path] = found
        return found


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


def fill(
    tables: NameTables,
    module: nn.Module,
    root: RootModule,
    last: Mapping[str, weakref.ref[torch.Tensor]],
) -> None:
    """Enter the contents of a root. `last` are the parameters of the tables before, by name."""
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


def path_of(path: str, key: str) -> str:
    """The path of what a module holds under a key, from the path of the module."""
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
        names = [root.name(path_of(path, key)) for key in table(module, "_modules")]
        tables.next_module.update(itertools.pairwise(names))


def _fill_tensors(
    tables: NameTables,
    module: nn.Module,
    path: str,
    root: RootModule,
    last: Mapping[str, weakref.ref[torch.Tensor]],
) -> None:
    holder = root.name(path)
    for key, held in table(module, "_parameters").items():
        if held is None:
            continue
        name = root.name(path_of(path, key))
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
            name = root.name(path_of(path, key))
            tables.buffer_by_id[id(buffer)] = name
            tables.buffers[name] = (buffer, holder)

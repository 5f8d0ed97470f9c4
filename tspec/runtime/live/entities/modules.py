"""Subjects of kind `module`: the modules of the root models, without wrappers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from tspec.runtime.edges import Ref
from tspec.runtime.live.convert import plain_values
from tspec.runtime.live.entities.kind import ABSENT, UNKNOWN
from tspec.runtime.live.instrument.dotted import spellings
from tspec.runtime.live.models import ModelRegistry
from tspec.runtime.live.module_tree import table, trains, unwrapped, walk
from tspec.values import Datum


class ModuleSubjects:
    """Kind `module`. Things are `nn.Module`s."""

    def __init__(self, models: ModelRegistry, copied: Callable[[], Iterable[torch.Tensor]]) -> None:
        self._models = models
        self._copied = copied
        """Gives the parameters to which values were copied."""
        self._classes: tuple[int, dict[type, str]] = (-1, {})
        self._held: tuple[int, dict[str, frozenset[Ref]], dict[str, frozenset[str]]] = (-1, {}, {})

    def things(self) -> Mapping[str, nn.Module]:
        return self._models.tables.modules

    def name_of(self, thing: Any) -> str | None:
        if not isinstance(thing, nn.Module):
            return None
        return self._models.tables.module_by_id.get(id(unwrapped(thing)))

    def column(self, name: str, things: Mapping[str, nn.Module]) -> dict[str, Datum] | None:
        if name == "training":
            return {s: trains(module) for s, module in things.items()}
        if name == "root":
            titles = self._models.tables.titles
            return {s: s in titles for s in things}
        if name == "element":
            elements = self._models.tables.elements
            return {s: s in elements for s in things}
        if name == "called":
            called = self._models.called
            return {s: module in called for s, module in things.items()}
        if name == "parameters":
            held = self._tables()[0]
            return {s: held.get(s, frozenset()) for s in things}
        if name == "copied":
            held, copied = self._tables()[0], self._copied_names()
            return {s: _part(held.get(s), copied) for s in things}
        return None

    def field(self, name: str, subject: str, thing: nn.Module) -> Datum:
        column = self.column(name, {subject: thing})
        if column is not None:
            return column[subject]
        models = self._models
        if name == "class":
            return self._spelled(type(thing))
        if name == "name":
            return subject
        if name == "leaf":
            return not any(child is not None for child in table(thing, "_modules").values())
        if name == "state_names":
            return self._tables()[1].get(subject, frozenset())
        if name == "attributes":
            return attributes(thing)
        if name == "requires_grad":
            return _assigned_requires_grad(thing)
        if name == "next":
            following = models.tables.next_module.get(subject)
            return ABSENT if following is None else Ref("module", following)
        return UNKNOWN

    def _copied_names(self) -> set[Ref]:
        """The parameters to which values were copied."""
        names = map(self._models.name_of_parameter, self._copied())
        return {Ref("parameter", name) for name in names if name is not None}

    def _spelled(self, kind: type) -> str:
        """The paths of a class, looked for again when the models have changed."""
        version = self._models.version
        if self._classes[0] != version:
            self._classes = (version, {})
        known = self._classes[1]
        if kind not in known:
            known[kind] = spellings(kind)
        return known[kind]

    def _tables(self) -> tuple[dict[str, frozenset[Ref]], dict[str, frozenset[str]]]:
        """Parameters and state names of each module, made again when the models have changed."""
        models = self._models
        if self._held[0] != models.version:
            parameters: dict[str, frozenset[Ref]] = {}
            names: dict[str, frozenset[str]] = {}
            for subject, module in models.tables.modules.items():
                parameters[subject] = frozenset(
                    Ref("parameter", name) for name in models.parameters_in(module)
                )
                names[subject] = frozenset(state_names(module))
            self._held = (models.version, parameters, names)
        return self._held[1], self._held[2]


def _part(held: frozenset[Ref] | None, chosen: set[Ref]) -> Datum:
    """The fraction of some parameters that are chosen; ABSENT of none."""
    if not held:
        return ABSENT
    return len(held & chosen) / len(held) if chosen else 0.0


def attributes(module: nn.Module) -> dict[str, Any]:
    """Plain public values of a module; a parameter that there is counts as true (`bias`)."""
    found = plain_values(module)
    found.pop("training", None)
    for key, parameter in table(module, "_parameters").items():
        if parameter is not None:
            found[key] = True
    return found


def _assigned_requires_grad(module: nn.Module) -> Any:
    """The value assigned to a module's `requires_grad`; absent if a constructor of its class uses
    that name.
    """
    value = vars(module).get("requires_grad")
    if not isinstance(value, bool):
        return ABSENT
    built = (getattr(vars(base).get("__init__"), "__code__", None) for base in type(module).__mro__)
    said = any("requires_grad" in code.co_names for code in built if code is not None)
    return ABSENT if said else value


def repeated_places(module: nn.Module) -> int:
    """How many places of a list of modules hold a module with parameters that an earlier place holds too."""
    if not isinstance(module, (nn.ModuleList, nn.ModuleDict, nn.Sequential)):
        return 0
    held = [
        id(each)
        for each in table(module, "_modules").values()
        if each is not None and any(True for _ in each.parameters())
    ]
    return len(held) - len({*held})


def state_names(module: nn.Module) -> list[str]:
    """Keys of the module's `state_dict`, without making one."""
    return [name for name, _ in state_of(module)]


def state_of(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and tensors of the module's `state_dict`, the parameters and buffers themselves."""
    for path, held in walk(module):
        prefix = f"{path}." if path else ""
        held_tensors = {**table(held, "_parameters"), **table(held, "_buffers")}
        left_out = vars(held).get("_non_persistent_buffers_set", ())
        for key, value in held_tensors.items():
            if value is not None and key not in left_out:
                yield prefix + key, value

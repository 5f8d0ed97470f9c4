"""The models in a saved object: their state dicts, in any container."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.entities.modules import state_names, state_of

DEPTH = 6
"""The depth of nested mappings in which state dicts are searched."""
WRAPPERS = ("module.", "_orig_mod.")
"""Prefixes that wrappers add to the names of the wrapped module."""


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A model whose state is saved, and the names of its state that no state dict holds."""

    model: nn.Module
    missing: tuple[str, ...]


def saved_models(value: Any, models: Iterable[nn.Module]) -> list[SavedModel]:
    """The models that have a state dict in a saved object.

    A state dict belongs to the model that has most of its names, if that is more than half of them.
    A model and its average have the same names, and parts of a model may be saved separately: names
    missing in one dict of a model may be in another. A tensor with several names, such as tied
    embeddings, may be saved under any of them.
    """
    own = {id(model): (model, frozenset(state_names(model))) for model in models}
    held: dict[int, set[str]] = {}
    for names in state_dicts(value):
        best = max(own, key=lambda each: len(names & own[each][1]), default=None)
        if best is not None and 2 * len(names & own[best][1]) > len(names):
            held.setdefault(best, set()).update(names)
    return [SavedModel(own[each][0], _missing(own[each][0], held[each])) for each in held]


def is_own_state(module: nn.Module, state: Mapping[str, Any]) -> bool:
    """True if each tensor of a state dict shares memory with the module's tensor of that name.

    False if there are no tensors.
    """
    tensors = {key: value for key, value in state.items() if _is_tensor(value)}
    own = dict(state_of(module))
    return bool(tensors) and all(
        key in own and _same_memory(value, own[key]) for key, value in tensors.items()
    )


def not_loaded(
    module: nn.Module, state: Mapping[str, Any], missing: Sequence[str], unexpected: Sequence[str]
) -> list[str]:
    """The names that a state dict lacked by mistake.

    A name is left out if its tensor was loaded under another name, or if the script removed it, as
    for a head that is trained anew. The `_metadata` of a dict from `state_dict()` names the modules
    that it was taken from. A dict without `_metadata` was made by the script. A removal is
    deliberate only if the module has all remaining names.
    """
    left = without_loaded(module, missing)
    if unexpected:
        return left
    was_of = getattr(state, "_metadata", None)
    return [] if was_of is None else [n for n in left if n.rpartition(".")[0] not in was_of]


def without_loaded(module: nn.Module, missing: Sequence[str]) -> list[str]:
    """The missing names of a module's state, without tensors that were loaded under another name."""
    lacking, own = frozenset(missing), dict(state_of(module))
    loaded = {id(tensor) for name, tensor in own.items() if name not in lacking}
    return [name for name in missing if name not in own or id(own[name]) not in loaded]


def written_to(file: Any) -> str | None:
    """The machine and the path of a file that is named; None of an open one."""
    if not isinstance(file, (str, os.PathLike)):
        return None
    return f"{platform.node()}:{os.path.abspath(os.fspath(file))}"


def _same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not {type(one), type(other)} <= {torch.Tensor, nn.Parameter}:
        return one is other
    place = one.data_ptr()
    return place != 0 and place == other.data_ptr() and one.shape == other.shape


def _missing(model: nn.Module, held: set[str]) -> tuple[str, ...]:
    """The names of a model's state that are not held, nor held under another name of the same tensor."""
    named: dict[int, list[str]] = {}
    for name, tensor in state_of(model):
        named.setdefault(id(tensor), []).append(name)
    return tuple(sorted(names[0] for names in named.values() if held.isdisjoint(names)))


def state_dicts(value: Any, depth: int = DEPTH) -> Iterator[frozenset[str]]:
    """For each mapping within a saved object, the names of its tensors.

    A module counts as its state dict.
    """
    if hasattr(value, "state_dict") and hasattr(value, "named_modules"):
        value = value.state_dict()
    if not isinstance(value, Mapping):
        return
    names = {key for key, item in value.items() if isinstance(key, str) and _is_tensor(item)}
    if names:
        yield frozenset(_unwrapped(names))
    if depth > 0:
        for item in value.values():
            yield from state_dicts(item, depth - 1)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "storage_offset")


def _unwrapped(names: set[str]) -> set[str]:
    for prefix in WRAPPERS:
        if all(name.startswith(prefix) for name in names):
            names = {name[len(prefix) :] for name in names}
    return names

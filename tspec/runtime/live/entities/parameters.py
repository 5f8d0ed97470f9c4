"""Parameters, buffers, and the optimizer's state of each parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from tspec.runtime.edges import Ref
from tspec.runtime.live.entities.copies import Paths, copies, counterparts
from tspec.runtime.live.entities.kind import ABSENT, UNKNOWN, asked
from tspec.runtime.live.entities.optimizers import OptimizerSubjects
from tspec.runtime.live.entities.others import WrapperSubjects
from tspec.runtime.live.entities.stages import PipelineStages
from tspec.runtime.live.models import ModelRegistry
from tspec.runtime.live.name_tables import NamedParameter
from tspec.runtime.live.placed import cuts, placed, placements
from tspec.values import Datum

MISSPELT = ("require_grad", "require_grads", "requires_grads", "requires_gradient")
"""Attributes that scripts give to tensors in place of `requires_grad`."""


class ParameterSubjects:
    """Kind `parameter`. Things are `NamedParameter`."""

    def __init__(
        self,
        models: ModelRegistry,
        optimizers: OptimizerSubjects,
        wrappers: WrapperSubjects,
        stages: PipelineStages,
        changes: Mapping[str, Callable[[Sequence[torch.Tensor]], Sequence[Datum]]],
        adapters: Sequence[Callable[[str, str, Mapping[str, Any]], Mapping[str, Datum]]] = (),
    ) -> None:
        """`changes`: field -> the function that reads how tensors change between updates.

        `adapters` read fields of a framework.
        """
        self._models = models
        self._optimizers = optimizers
        self._wrappers = wrappers
        self._stages = stages
        self._adapters = adapters
        self.copies_of = _NamesInModels(models, copies)
        self._counterparts_of = _NamesInModels(models, counterparts)
        self._columns: Mapping[str, Callable[[Mapping[str, NamedParameter]], dict[str, Datum]]] = {
            "data": lambda things: {s: one.tensor for s, one in things.items()},
            "grad": _grad_column,
            "requires_grad": lambda things: {
                s: bool(one.tensor.requires_grad) for s, one in things.items()
            },
            "group": self._group_column,
            "dtype": lambda things: {
                s: str(one.tensor.dtype).removeprefix("torch.") for s, one in things.items()
            },
            "module": _module_column,
            "in_list": self._in_list_column,
            "paired_data": self._paired_column,
            "trained_copies": self._trained_copies_column,
            **{name: partial(_change_column, known) for name, known in changes.items()},
        }
        """Field -> how it is read of many parameters at once."""
        self._fields: Mapping[str, Callable[[str, NamedParameter], Datum]] = {
            "name": lambda subject, one: subject,
            "names": lambda subject, one: frozenset(one.names),
            "shared": lambda subject, one: _is_shared(one.tensor),
            "misspelt": lambda subject, one: _misspelt(one.tensor),
            "copies": lambda subject, one: frozenset(
                Ref("parameter", each) for each in self.copies_of(subject)
            ),
            "counterparts": lambda subject, one: frozenset(
                Ref("parameter", each) for each in self._counterparts_of(subject)
            ),
            "main": lambda subject, one: _or_absent(getattr(one.tensor, "main_param", None)),
            "whole_shape": self._whole_shape,
            "placements": lambda subject, one: _placements(one.tensor),
            "grad_placements": lambda subject, one: _placements(one.tensor.grad),
            "cuts": lambda subject, one: cuts(one.tensor) or UNKNOWN,
            "replicas": lambda subject, one: self._replicas(one.tensor, one.module),
        }
        """Field -> the function that reads it from one parameter. Other fields are a framework's,
        or attributes.
        """

    def copies_anywhere(self, subject: str) -> frozenset[str]:
        """The names of a parameter's copies in other models, and of its counterparts in its own."""
        return self.copies_of(subject) | self._counterparts_of(subject)

    def things(self) -> Mapping[str, NamedParameter]:
        return self._models.parameters()

    def name_of(self, thing: Any) -> str | None:
        return self._models.name_of_parameter(thing) if isinstance(thing, torch.Tensor) else None

    def column(self, name: str, things: Mapping[str, NamedParameter]) -> dict[str, Datum] | None:
        """A field of many parameters; None if it has to be read from each separately, UNKNOWN if this kind does not define it."""
        read_all = self._columns.get(name)
        if read_all is not None:
            return read_all(things)
        return None if name in self._fields else dict.fromkeys(things, UNKNOWN)

    def field(self, name: str, subject: str, thing: NamedParameter) -> Datum:
        """A field of one parameter."""
        read = self._fields.get(name)
        if read is not None:
            return read(subject, thing)
        read_all = self._columns.get(name)
        return UNKNOWN if read_all is None else read_all({subject: thing})[subject]

    def _group_column(self, things: Mapping[str, NamedParameter]) -> dict[str, Datum]:
        self._optimizers.find_groups()
        group_of = self._optimizers.group_of
        return {s: group_of(one.tensor) or ABSENT for s, one in things.items()}

    def _paired_column(self, things: Mapping[str, NamedParameter]) -> dict[str, Datum]:
        unlike = self._unlike(things)
        return {
            s: one.tensor if self.copies_of(s) or unlike.get(s) else UNKNOWN
            for s, one in things.items()
        }

    def _trained_copies_column(self, things: Mapping[str, NamedParameter]) -> dict[str, Datum]:
        unlike = self._unlike(things)
        return {
            s: frozenset(
                Ref("parameter", each)
                for each in (() if self._is_trained(one.tensor) else unlike.get(s, ()))
            )
            for s, one in things.items()
        }

    def _unlike(self, things: Mapping[str, NamedParameter]) -> dict[str, list[str]]:
        """Of each parameter that has copies or counterparts: those that are trained if it is not, or the other way round."""
        pairs = {s: names for s in things if (names := self.copies_anywhere(s))}
        if not pairs:
            return {}
        self._optimizers.find_groups()
        known = {**self.things(), **things}
        trained = {s: self._is_trained(one.tensor) for s, one in known.items()}
        return {
            s: [each for each in names if trained.get(each, trained[s]) != trained[s]]
            for s, names in pairs.items()
        }

    def _is_trained(self, tensor: torch.Tensor) -> bool:
        """An optimizer holds it, and it asks for a gradient."""
        return tensor.requires_grad and self._optimizers.group_of(tensor) is not None

    def _in_list_column(self, things: Mapping[str, NamedParameter]) -> dict[str, Datum]:
        in_lists = self._models.tables.in_lists
        return {s: one.module in in_lists for s, one in things.items()}

    def _replicas(self, tensor: torch.Tensor, module: str | None) -> Datum:
        """The ranks with the same part of the tensor, according to the framework that cut or copied
        it.
        """
        return (
            self._wrappers.replicas(module)
            or placed(tensor)
            or self._wrappers.holder_of_flat(tensor)
            or self._stages.holder(module)
            or UNKNOWN
        )

    def _whole_shape(self, subject: str, one: NamedParameter) -> Datum:
        """The shape of the whole tensor. A framework that cuts by itself knows more than the tensor."""
        for read in self._adapters:
            said = read("parameter", "whole_shape", {subject: one})
            if subject in said:
                return said[subject]
        return UNKNOWN if is_lazy(one.tensor) else tuple(one.tensor.shape)


class _NamesInModels:
    """The names that belong to a parameter. They are computed again after a model was found or replaced."""

    def __init__(
        self,
        models: ModelRegistry,
        compute: Callable[[Sequence[Paths]], Mapping[str, frozenset[str]]],
    ) -> None:
        self._models = models
        self._compute = compute
        self._known: tuple[int, Mapping[str, frozenset[str]]] = (-1, {})

    def __call__(self, subject: str) -> frozenset[str]:
        if self._known[0] != self._models.version:
            self._known = (self._models.version, self._compute(self._models.paths()))
        return self._known[1].get(subject, frozenset())


def _change_column(
    known: Callable[[Sequence[torch.Tensor]], Sequence[Any]], things: Mapping[str, NamedParameter]
) -> dict[str, Datum]:
    values = known([one.tensor for one in things.values()])
    return dict(zip(things, values, strict=True))


def _grad_column(things: Mapping[str, NamedParameter]) -> dict[str, Datum]:
    return {s: _or_absent(one.tensor.grad) for s, one in things.items()}


def _module_column(things: Mapping[str, NamedParameter]) -> dict[str, Datum]:
    holders = {s: one.module for s, one in things.items()}
    return {s: ABSENT if m is None else Ref("module", m) for s, m in holders.items()}


def _placements(tensor: Any) -> Any:
    found = placements(tensor)
    return ABSENT if found is None else tuple(found)


def _or_absent(value: Any) -> Any:
    return ABSENT if value is None else value


def _misspelt(tensor: torch.Tensor) -> tuple[str, ...]:
    return tuple(name for name in MISSPELT if name in vars(tensor))


def _is_shared(tensor: torch.Tensor) -> bool:
    """True if processes of this machine may share the tensor's memory.

    False for a tensor without storage, and for one on an accelerator, where torch's `is_shared` is
    always true.
    """
    plain = tensor.device.type == "cpu" and torch._C._has_storage(tensor)
    return plain and bool(tensor.is_shared())  # type: ignore[no-untyped-call]


class BufferSubjects:
    """Kind `buffer`. Things are pairs of tensor and the name of the module that holds it."""

    def __init__(self, models: ModelRegistry) -> None:
        self._models = models

    def things(self) -> Mapping[str, tuple[torch.Tensor, str]]:
        return self._models.tables.buffers

    def name_of(self, thing: Any) -> str | None:
        return self._models.tables.buffer_by_id.get(id(thing))

    def field(self, name: str, subject: str, thing: tuple[torch.Tensor, str]) -> Datum:
        if name == "data":
            return thing[0]
        if name == "name":
            return subject
        return Ref("module", thing[1]) if name == "module" else ABSENT


class OptimizerStateSubjects:
    """Kind `state`: `fc.weight.exp_avg`. Things are triples of a parameter's name, key and tensor.

    Counters (tensors without dimensions) are left out.
    """

    def __init__(self, models: ModelRegistry, optimizers: OptimizerSubjects) -> None:
        self._models = models
        self._optimizers = optimizers
        self._subjects: dict[str, dict[Any, str]] = {}
        """A parameter's name -> the key of a state -> the name of the state."""
        self._names: tuple[str, ...] = ()
        self._named_for: Any = None
        """The objects for which `_names` are the names."""

    def names(self) -> tuple[str, ...]:
        """The names of all states. They stay while the optimizers hold the same objects."""
        held = (
            self._models.version,
            [
                [id(each), *map(id, values.values())] if isinstance(values, Mapping) else None
                for optimizer in self._optimizers.things().values()
                if isinstance(state := asked(optimizer, "state"), Mapping)
                for each, values in state.items()
            ],
        )
        if held != self._named_for:
            self._named_for, self._names = held, tuple(self.things())
        return self._names

    def things(self) -> Mapping[str, tuple[str, str, torch.Tensor]]:
        found: dict[str, tuple[str, str, torch.Tensor]] = {}
        subjects, in_models = self._subjects, self._models.tables.parameter_by_id
        for optimizer in self._optimizers.things().values():
            held = asked(optimizer, "state")
            if not isinstance(held, Mapping):
                continue
            for parameter, values in list(held.items()):
                if not isinstance(parameter, torch.Tensor) or not (
                    values.__class__ is dict or isinstance(values, Mapping)
                ):
                    continue
                name = in_models.get(id(parameter)) or self._models.name_of_parameter(parameter)
                if name is None:
                    continue
                known = subjects.get(name) or subjects.setdefault(name, {})
                for key, value in values.items():
                    if isinstance(value, torch.Tensor) and value.dim() > 0:
                        if key not in known:
                            known[key] = f"{name}.{key}"
                        subject = known[key]
                        if subject not in found:
                            found[subject] = (name, str(key), value)
        return found

    def name_of(self, thing: Any) -> str | None:
        return None

    def field(self, name: str, subject: str, thing: tuple[str, str, torch.Tensor]) -> Datum:
        if name == "data":
            return thing[2]
        if name == "parameter":
            return Ref("parameter", thing[0])
        return thing[1] if name == "name" else ABSENT

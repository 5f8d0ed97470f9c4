"""Parameters, buffers, and the optimizer's state of each parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from tspec.runtime.edges import Ref
from tspec.runtime.live.entities.kind import ABSENT, UNKNOWN, asked
from tspec.runtime.live.entities.optimizers import OptimizerSubjects
from tspec.runtime.live.entities.others import WrapperSubjects
from tspec.runtime.live.entities.stages import PipelineStages
from tspec.runtime.live.models import ModelRegistry, NamedParameter
from tspec.runtime.live.placed import placed, placements


class ParameterSubjects:
    """Kind `parameter`. Things are `models.Parameter`."""

    def __init__(
        self,
        models: ModelRegistry,
        optimizers: OptimizerSubjects,
        wrappers: WrapperSubjects,
        stages: PipelineStages,
    ) -> None:
        self._models = models
        self._optimizers = optimizers
        self._wrappers = wrappers
        self._stages = stages

    def things(self) -> Mapping[str, NamedParameter]:
        return self._models.parameters()

    def name_of(self, thing: Any) -> str | None:
        return self._models.name_of_parameter(thing) if isinstance(thing, torch.Tensor) else None

    def field(self, name: str, subject: str, thing: NamedParameter) -> Any:
        tensor = thing.tensor
        if name == "data":
            return tensor
        if name == "grad":
            return ABSENT if tensor.grad is None else tensor.grad
        if name == "name":
            return subject
        if name == "names":
            return frozenset(thing.names)
        if name == "module":
            return ABSENT if thing.module is None else Ref("module", thing.module)
        if name == "dtype":
            return str(tensor.dtype).removeprefix("torch.")
        if name == "requires_grad":
            return bool(tensor.requires_grad)
        if name == "shared":
            return _is_shared(tensor)
        if name == "main":
            main = getattr(tensor, "main_param", None)
            return ABSENT if main is None else main
        if name == "group":
            return self._optimizers.group_of(tensor) or ABSENT
        if name == "whole_shape":
            return UNKNOWN if is_lazy(tensor) else tuple(tensor.shape)
        if name == "placements":
            found = placements(tensor)
            return ABSENT if found is None else tuple(found)
        if name == "grad_placements":
            found = placements(tensor.grad)
            return ABSENT if found is None else tuple(found)
        if name == "replicas":
            return (
                self._wrappers.replicas(thing.module)
                or placed(tensor)
                or self._wrappers.holder_of_flat(tensor)
                or self._stages.holder(thing.module)
                or UNKNOWN
            )
        return UNKNOWN


def _is_shared(tensor: torch.Tensor) -> bool:
    """Whether processes of this machine may share its memory: of an accelerator torch always says so, of what has no storage never."""
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

    def field(self, name: str, subject: str, thing: tuple[torch.Tensor, str]) -> Any:
        if name == "data":
            return thing[0]
        if name == "name":
            return subject
        return Ref("module", thing[1]) if name == "module" else ABSENT


class OptimizerStateSubjects:
    """Kind `state`: `fc.weight.exp_avg`. Things are triples of parameter, key and tensor.

    Counters (tensors without dimensions) are left out.
    """

    def __init__(self, models: ModelRegistry, optimizers: OptimizerSubjects) -> None:
        self._models = models
        self._optimizers = optimizers

    def things(self) -> Mapping[str, tuple[Ref, str, torch.Tensor]]:
        found: dict[str, tuple[Ref, str, torch.Tensor]] = {}
        for optimizer in self._optimizers.things().values():
            held = asked(optimizer, "state")
            if not isinstance(held, Mapping):
                continue
            for parameter, values in list(held.items()):
                if not isinstance(parameter, torch.Tensor) or not isinstance(values, Mapping):
                    continue
                name = self._models.name_of_parameter(parameter)
                if name is None:
                    continue
                for key, value in values.items():
                    if isinstance(value, torch.Tensor) and value.dim() > 0:
                        found.setdefault(f"{name}.{key}", (Ref("parameter", name), str(key), value))
        return found

    def name_of(self, thing: Any) -> str | None:
        return None

    def field(self, name: str, subject: str, thing: tuple[Ref, str, torch.Tensor]) -> Any:
        if name == "data":
            return thing[2]
        if name == "parameter":
            return thing[0]
        return thing[1] if name == "name" else ABSENT

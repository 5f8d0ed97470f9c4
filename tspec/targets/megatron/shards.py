"""The ranks that hold a copy of a parameter, and the part of it that counts on this rank.

Both are read from Megatron's attributes and groups. They are evidence: `std.megatron` compares them
with the data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from tspec.runtime.live.entities.kind import ABSENT, asked
from tspec.runtime.live.identity import IdentitySet
from tspec.runtime.live.watch import GroupSpec

STATE = "megatron.core.parallel_state"
GROUPS = (
    GroupSpec("tp", (f"{STATE}.get_tensor_model_parallel_group",)),
    GroupSpec("dp", (f"{STATE}.get_data_parallel_group",)),
    GroupSpec("pp", (f"{STATE}.get_pipeline_model_parallel_group",)),
    GroupSpec("cp", (f"{STATE}.get_context_parallel_group",)),
)
"""The axes that findings name in a job whose rules do not use `std.megatron`, which declares the same."""


class ShardedFields:
    """Fields of parameters and modules of one job. Groups and attributes are read anew each time."""

    def __init__(self) -> None:
        self._sharding: IdentitySet[Any] = IdentitySet()
        """The distributed optimizers that were seen."""

    def learn(self, optimizer: Any) -> None:
        """An optimizer of Megatron's, which may hold others."""
        for each in getattr(optimizer, "chained_optimizers", [optimizer]):
            if hasattr(each, "model_param_gbuf_map"):
                self._sharding.add(each)

    def column(self, kind: str, name: str, things: Mapping[str, Any]) -> Mapping[str, Any]:
        """One field of parameters or of modules; empty if the field is not Megatron's.

        The optimizer's own copies, which no module holds, have only `replicas`: this rank alone.
        Their names are numbers on the rank, so they cannot be paired.
        """
        if kind == "parameter":
            if (name not in _OF_PARAMETERS and name != "replicas") or _groups() is None:
                return {}
            if name == "replicas":
                return _replicas(things)
            read = _OF_PARAMETERS[name]
            if name == "whole_shape":
                things = {s: one for s, one in things.items() if one.module is not None}
            return {
                s: ABSENT if one.module is None else read(self, one.tensor)
                for s, one in things.items()
            }
        elif kind == "module" and (of := _OF_CONFIGURATIONS.get(name)) is not None:
            return {s: of(getattr(one, "config", None)) for s, one in things.items()}
        return {}

    def counted(self, parameter: torch.Tensor) -> bool:
        """True if this rank is the first that holds a copy of the main gradient."""
        copies = ranks_of(axes(*_flags(parameter), data_parallel=not self.sharded(parameter)))
        return copies[0] == dist.get_rank()

    def sharded(self, parameter: torch.Tensor) -> bool:
        """The distributed optimizer has cut the main gradient and the main copy."""
        return self._optimizer_of(parameter) is not None

    def main_grad(self, parameter: torch.Tensor) -> Any:
        """The part of the main gradient that this rank updates from."""
        gradient = getattr(parameter, "main_grad", None)
        return ABSENT if gradient is None else self._own(parameter, gradient)

    def shard(self, parameter: torch.Tensor) -> Any:
        """The part of the parameter that this rank updates."""
        return self._own(parameter, parameter)

    def gathered(self, parameter: torch.Tensor) -> bool:
        """False while the shards that other ranks have updated are still to be gathered.

        Under `overlap_param_gather` the next forward pass waits for them, bucket by bucket.
        """
        optimizer = self._optimizer_of(parameter)
        for chunk in getattr(optimizer, "model_chunks", ()):
            bucket = getattr(chunk, "param_to_bucket_group", {}).get(parameter)
            if bucket is not None and bucket.ddp_config.overlap_param_gather:
                return bucket.param_gather_dispatched and bucket.param_gather_handle is None
        return True

    def _own(self, parameter: torch.Tensor, whole: torch.Tensor) -> Any:
        optimizer = self._optimizer_of(parameter)
        if optimizer is None:
            return whole
        if parameter not in optimizer.model_param_gbuf_map:
            return ABSENT
        part = optimizer._get_model_param_range_map(parameter)["param"]
        return whole.detach().view(-1)[part.start : part.end]

    def _optimizer_of(self, parameter: torch.Tensor) -> Any:
        """The distributed optimizer that updates a parameter, also where this rank owns no part of it."""
        if not self._sharding:
            return None
        for optimizer in self._sharding.alive():
            if any(parameter in buffer.param_index_map for buffer in optimizer.buffers):
                return optimizer
        return None


def _replicas(parameters: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    """The ranks that hold a copy of each parameter. Parameters with the same flags have the same ranks."""
    alone = (dist.get_rank(),)
    known: dict[tuple[bool, bool, bool], tuple[int, ...]] = {}
    found: dict[str, tuple[int, ...]] = {}
    for subject, one in parameters.items():
        if one.module is None:
            found[subject] = alone
            continue
        flags = _flags(one.tensor)
        if flags not in known:
            known[flags] = ranks_of(axes(*flags))
        found[subject] = known[flags]
    return found


def _flags(parameter: torch.Tensor) -> tuple[bool, bool, bool]:
    """What decides which ranks hold copies of a parameter: the arguments of `axes`."""
    return is_expert(parameter), is_cut(parameter), is_shared_embedding(parameter)


def is_expert(parameter: torch.Tensor) -> bool:
    """True if the parameter is reduced over the expert's own data-parallel group."""
    return not getattr(parameter, "allreduce", True)


def is_cut(parameter: torch.Tensor) -> bool:
    """True if the parameter is sharded over the tensor-parallel ranks; for experts, over the
    expert-tensor-parallel ranks.

    The flag is set on every tensor that may be sharded, even if there is only one rank.
    """
    if not getattr(parameter, "tensor_model_parallel", False):
        return False
    return not is_expert(parameter) or _size(_groups().get_expert_tensor_parallel_group) > 1


def is_shared_embedding(parameter: torch.Tensor) -> bool:
    """True if the first and the last stage each hold a copy of the parameter."""
    return bool(getattr(parameter, "shared_embedding", False))


def whole_shape(parameter: torch.Tensor) -> tuple[int, ...]:
    """The shape of the full tensor, whose shards the tensor-parallel ranks hold."""
    cut = _cut(parameter)
    return tuple(
        length * cut.pieces if cut is not None and place == cut.dimension else length
        for place, length in enumerate(parameter.shape)
    )


def cuts(parameter: torch.Tensor) -> Any:
    """Along which dimension it is cut, over which ranks, as `DTensor`s say it."""
    cut = _cut(parameter)
    return ABSENT if cut is None else (f"Shard({cut.dimension}) over {cut.axis}",)


@dataclass(frozen=True, slots=True)
class _Cut:
    """The number of shards into which a parameter is cut, the dimension, and the axis of ranks."""

    dimension: int
    pieces: int
    axis: str


def _cut(parameter: torch.Tensor) -> _Cut | None:
    if not is_cut(parameter):
        return None
    groups = _groups()
    if is_expert(parameter):
        axis, pieces = "etp", _size(groups.get_expert_tensor_parallel_group)
    else:
        axis, pieces = "tp", _size(groups.get_tensor_model_parallel_group)
    dimension = asked(parameter, "partition_dim")
    return _Cut(dimension, pieces, axis) if pieces > 1 and isinstance(dimension, int) else None


def _size(group: Any) -> int:
    found = group(check_initialized=False)
    return 1 if found is None else len(_members(found))


_OF_PARAMETERS = {
    "expert": lambda pieces, p: is_expert(p),
    "tensor_model_parallel": lambda pieces, p: is_cut(p),
    "partition_dim": lambda pieces, p: asked(p, "partition_dim") if is_cut(p) else ABSENT,
    "sequence_parallel": lambda pieces, p: bool(getattr(p, "sequence_parallel", False)),
    "whole_shape": lambda pieces, p: whole_shape(p),
    "cuts": lambda pieces, p: cuts(p),
    "shared_embedding": lambda pieces, p: is_shared_embedding(p),
    "counted": ShardedFields.counted,
    "sharded": ShardedFields.sharded,
    "main_grad": ShardedFields.main_grad,
    "shard": ShardedFields.shard,
    "gathered": ShardedFields.gathered,
}
_OF_CONFIGURATIONS: Mapping[str, Callable[[Any], Any]] = {
    "sequence_parallel": lambda config: bool(getattr(config, "sequence_parallel", False)),
    "attention_dropout": lambda config: getattr(config, "attention_dropout", ABSENT),
}
"""Fields of modules that their configuration has."""


def _groups() -> Any:
    """Megatron's module of groups, if there are any. It holds them still where the job has ended its process group."""
    state = sys.modules.get(STATE)
    is_set_up = state is not None and state.model_parallel_is_initialized()
    return state if is_set_up and dist.is_initialized() else None


def axes(expert: bool, cut: bool, shared: bool, *, data_parallel: bool = True) -> Iterator[Any]:
    """The process groups along which the other ranks hold a copy of a parameter.

    `expert`, `cut` and `shared`: it is an expert's, it is sharded over tensor-parallel ranks, it is an embedding that
    two stages hold.
    """
    state = _groups()
    if expert:
        if data_parallel:
            yield state.get_expert_data_parallel_group(check_initialized=False)
        if not cut:
            yield state.get_expert_tensor_parallel_group(check_initialized=False)
        return
    if data_parallel:
        yield state.get_data_parallel_group(with_context_parallel=True)
    if not cut:
        yield state.get_tensor_model_parallel_group(check_initialized=False)
    if shared:
        yield state.get_embedding_group(check_initialized=False)


def ranks_of(groups: Iterable[Any]) -> tuple[int, ...]:
    """All ranks that are reached along some groups from this one, which is among them; ascending.

    Ranks are a grid: a step along one axis is the same offset wherever it begins.
    """
    me = dist.get_rank()
    found = {me}
    for group in groups:
        if group is not None and me in (members := _members(group)):
            found = {rank + other - me for rank in found for other in members}
    return tuple(sorted(found))


def _members(group: Any) -> Sequence[int]:
    return dist.get_process_group_ranks(group)

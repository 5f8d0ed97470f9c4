"""Records the updates of a step: gradients, their norms, and optimizer states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tspec.equivalence.observing.held import copies, held_here, in_shape_of, placed_as, tensors
from tspec.equivalence.observing.module_calls import tensors_of
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.observing.recorder import TensorRecorder
from tspec.equivalence.observing.update_sizes import UpdateSizes
from tspec.equivalence.recording import GRADIENT_SQUARES, SkippedUpdate, TensorName
from tspec.runtime.edges import Ref, StateSource, WatchedCall


class Optimizers:
    """Records the tensors that updates read and write, and the parameters that this rank updates."""

    def __init__(self, orders: Orders, recorder: TensorRecorder, sizes: UpdateSizes) -> None:
        self._kinds = orders.kinds
        self._recorder = recorder
        self._sizes = sizes
        self._updated = 0
        """The latest step in which an optimizer of Megatron's began its update."""
        self._copies: dict[Ref, dict[str, str]] = {}
        """Optimizers that began an update -> name of a copy they hold -> name of the model's
        parameter.
        """
        self._updates: dict[Ref, frozenset[str]] = {}
        """Optimizers that began an update -> their parameters. An optimizer that delegates its
        update to another one has none.
        """
        self._norms: list[Tensor] = []
        """Norms of gradients that were computed since the latest update."""
        self._scaled = False
        """A gradient scaler's step has begun, and no update within it."""
        self._overflows: list[Any] = []
        """Numbers of the latest gradients that a scaler divided: positive if these were not finite."""
        self.skipped: set[SkippedUpdate] = set()
        """Updates that were skipped since gradients were not finite."""

    def begins_megatrons(self, call: WatchedCall, source: StateSource) -> None:
        """An optimizer of Megatron's begins its update."""
        if self._updated < call.context.step:
            self._updated = call.context.step
            self._record_parts(source)
            self._record_gradients(source, "main_grad")
            self._record_squares(call, source, "main_grad")

    def clips(self, call: WatchedCall, source: StateSource) -> None:
        """Gradients are about to be clipped by their norm."""
        self._record_squares(call, source, "grad")

    def ends_megatrons(self, call: WatchedCall) -> None:
        """An optimizer of Megatron's has ended its step. It may have skipped the update."""
        if call.fields.get("made") is False:
            self.skipped.add(SkippedUpdate(call.context.step))

    def unscaled(self, call: WatchedCall) -> None:
        """A gradient scaler has divided the gradients of an optimizer. Its ranks may still add up what they found."""
        self._overflows = tensors_of(call.fields.get("found"))

    def scaled_begins(self) -> None:
        """A gradient scaler begins the step of an optimizer."""
        self._scaled = True

    def scaled_ends(self, call: WatchedCall) -> None:
        """A gradient scaler has ended the step of an optimizer. If gradients are not finite, no update is made."""
        if self._scaled:
            self.skipped.add(SkippedUpdate(call.context.step, call.context.microbatch))
            self._norms.clear()
        elif any(map(bool, self._overflows)):  # a fused optimizer, which skips the update itself
            self.skipped.add(SkippedUpdate(call.context.step))
        self._scaled = False
        self._overflows = []

    def begins(self, call: WatchedCall, source: StateSource) -> None:
        """An optimizer of torch's begins its update, by itself or within another one's."""
        self._scaled = False
        if self._updated < call.context.step:
            self._record_gradients(source, "grad")
            self.record_norms(call)
        self._record_first_states(call, source)
        self._note_owner(call, source)

    def note_norm(self, call: WatchedCall) -> None:
        """Keep the norm of all gradients until these are recorded. Of a DTensor each rank has a part of it."""
        norm = call.fields.get("norm") if "gradient_norms" in self._kinds else None
        if isinstance(norm, Tensor):
            whole = getattr(norm, "full_tensor", None)
            self._norms.append((norm.detach() if whole is None else whole().detach()).clone())
        elif isinstance(norm, float):
            self._norms.append(torch.tensor(norm))

    def record_norms(self, call: WatchedCall) -> None:
        """The norms that were computed for an update."""
        now = TensorName("gradient_norms", "norm", call.context.step)
        for norm in self._norms:
            self._recorder.record(self._recorder.numbered(now), norm)
        self._norms.clear()

    def record_states(
        self, source: StateSource, step: int, of: frozenset[Ref] | None = None
    ) -> None:
        """The states that optimizers keep for parameters, in the parameter's shape if they cover
        all elements; `of` names some parameters.
        """
        if "states" not in self._kinds:
            return
        whole = tensors(source, "parameter", "data")
        models = {copy: name for each in self._copies.values() for copy, name in each.items()}
        keys, held = source.fields("state", "name"), tensors(source, "state", "data")
        found = {}
        for state, parameter in source.fields("state", "parameter").items():
            if isinstance(parameter, Ref) and (of is None or parameter in of):
                name = models.get(parameter.name, parameter.name)
                tensor = in_shape_of(whole[name], held[state])
                found[TensorName("states", f"{name}.{keys[state]}", step)] = tensor
        self._recorder.record_all(found)

    def elsewhere(self, source: StateSource) -> frozenset[str]:
        """The parameters that an optimizer of this rank holds, and that another rank updates."""
        held = _parameters(source)
        named = {each.name for optimizer in self._updates for each in held.get(optimizer.name, ())}
        return frozenset(named.difference(*self._updates.values()))

    def _record_gradients(self, source: StateSource, field: str) -> None:
        """Record the gradients that an update reads, in the parameter's shape if they cover all its elements.

        That of a copy is the gradient of the model's parameter, if this has none.
        """
        whole, gradients = (tensors(source, "parameter", each) for each in ("data", field))
        models = {} if gradients.keys() == whole.keys() else copies(source)
        for copy, gradient in gradients.items():
            model = models.get(copy, copy)
            is_its = model not in gradients and gradient.numel() == whole[model].numel()
            name = model if is_its else copy
            held = in_shape_of(whole[name], placed_as(whole[copy], gradient))
            self._recorder.record(TensorName("param_grads", name, source.context.step), held)
            local = held_here(held) if self._sizes.are_followed else None
            if local is not None:
                self._sizes.is_made_from(name, local)

    def _record_squares(self, call: WatchedCall, source: StateSource, field: str) -> None:
        """Record the squared norm of each gradient before the next norm of all scales them."""
        if "gradient_norms" not in self._kinds:
            return
        first = TensorName(GRADIENT_SQUARES, "", call.context.step, call=len(self._norms))
        whole = tensors(source, "parameter", "data")
        for name, gradient in tensors(source, "parameter", field).items():
            held = held_here(placed_as(whole[name], gradient))
            if held is not None:
                norm = torch.linalg.vector_norm(held.detach(), dtype=torch.float64)
                self._recorder.tensors[replace(first, name=name)] = norm.square()

    def _record_parts(self, source: StateSource) -> None:
        """The elements of each gradient from which this rank updates, if these are not all."""
        shards = source.fields("parameter", "shard")
        for name, tensor in source.fields("parameter", "data").items():
            part = shards.get(name)
            if not isinstance(part, Tensor):
                self._recorder.parts[name] = (0, 0)
            elif isinstance(tensor, Tensor) and part.numel() < tensor.numel():
                first = int(part.storage_offset() - tensor.storage_offset())
                self._recorder.parts[name] = (first, first + part.numel())

    def _record_first_states(self, call: WatchedCall, source: StateSource) -> None:
        """The states before an optimizer's first update, as loaded from a checkpoint."""
        optimizer = call.fields.get("optimizer")
        if "states" not in self._kinds or not isinstance(optimizer, Ref):
            return
        if optimizer not in self._copies:
            self._copies[optimizer] = copies(source)  # later Megatron's groups may be gone
            held = _parameters(source)[optimizer.name]
            self.record_states(source, 0, held)

    def _note_owner(self, call: WatchedCall, source: StateSource) -> None:
        """Note the parameters that this rank updates. Under `ZeroRedundancyOptimizer` they are
        those of the inner optimizer.
        """
        optimizer = call.fields.get("optimizer")
        if not isinstance(optimizer, Ref):
            return
        held = _parameters(source)[optimizer.name]
        self._updates[optimizer] = frozenset(each.name for each in held)
        outer = call.parent
        while outer is not None:
            other = outer.fields.get("optimizer")
            if isinstance(other, Ref) and other != optimizer:
                self._updates[other] = frozenset()
            outer = outer.parent


def _parameters(source: StateSource) -> dict[str, frozenset[Ref]]:
    """The parameters of each optimizer."""
    return {
        optimizer: frozenset(each for each in held if isinstance(each, Ref))
        for optimizer, held in source.fields("optimizer", "parameters").items()
        if isinstance(held, frozenset)
    }

"""Checks tensors of one rank that have to equal other tensors of the rank, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from tspec.equivalence.observing.held import held_here, tensors
from tspec.equivalence.observing.module_calls import given_to
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.observing.perturber import is_forward
from tspec.equivalence.recording import InexactTensor, TensorName
from tspec.runtime.edges import Ref, StateSource, WatchedCall
from tspec.runtime.live.digest import digests

HALF = 2
"""Bytes of the smallest dtype that main parameters are rounded to without a scale."""


class ModelCopies:
    """Compares the parameters of the model with the main parameters that optimizers update.

    Main parameters have a higher precision. After each step the model's copy is the main parameter,
    rounded. Under a distributed optimizer a rank has the main parameter of its shard only.
    """

    def __init__(self, orders: Orders) -> None:
        self._are_followed = "params" in orders.kinds
        self._checked = 0
        """The latest step in which an optimizer of Megatron's ended its update."""
        self._differing: dict[TensorName, InexactTensor] = {}

    @property
    def differing(self) -> frozenset[InexactTensor]:
        """The parameters that are not copies of their main parameters."""
        return frozenset(self._differing.values())

    def update_ends(self, step: int, source: StateSource) -> None:
        """An optimizer of Megatron's has ended its step. Its groups may be gone when the step closes."""
        self._checked = step
        self._check(step, source)

    def end_step(self, step: int, source: StateSource) -> None:
        """A step closes. A script may copy main parameters after the update."""
        if self._checked < step:
            self._check(step, source)

    def _check(self, step: int, source: StateSource) -> None:
        mains = tensors(source, "parameter", "main") if self._are_followed else {}
        shards = tensors(source, "parameter", "shard") if mains else {}
        copies = {**(tensors(source, "parameter", "data") if mains else {}), **shards}
        for name, main in mains.items():
            copied, updated = (
                None if each is None else held_here(each) for each in (copies.get(name), main)
            )
            if copied is None or updated is None or not _is_rounded(copied, updated):
                continue
            of = TensorName("params", name, step)
            says = _difference(copied.detach().flatten(), updated.detach().flatten())
            self._differing.pop(of, None)
            if says:
                self._differing[of] = InexactTensor(of, "copy", says)


def _is_rounded(copy: Tensor, main: Tensor) -> bool:
    """True if a copy has the elements of a main parameter, and memory of its own."""
    floating = copy.is_floating_point() and copy.itemsize >= HALF
    own = copy.data_ptr() != main.data_ptr()
    return floating and own and copy.numel() == main.numel()


def _difference(copy: Tensor, main: Tensor) -> str:
    """How a copy differs from the rounded main parameter; empty if it does not."""
    rounded = main.to(copy.dtype)
    if torch.equal(copy, rounded):
        return ""
    apart = (copy != rounded) & ~(copy.isnan() & rounded.isnan())
    number = int(apart.sum())
    if not number:
        return ""
    furthest = float((copy.double() - main.double())[apart].abs().max())
    dtype, of = (str(each.dtype).removeprefix("torch.") for each in (copy, main))
    return (
        f"{number} of {copy.numel()} elements are not the {of} main parameter rounded to {dtype}, "
        f"off by up to {furthest:.2g}"
    )


class Recomputations:
    """Compares what modules are given and return in a recomputation with their first pass.

    A module that is called several times in a micro-batch has to repeat one of these calls: a
    checkpoint may run them in another order. Perturbed and rewritten runs are not followed, since
    only the first pass is changed there.
    """

    def __init__(self, orders: Orders) -> None:
        changed = orders.perturbation is not None or any(
            not name.is_first_weight for name in orders.rewrites
        )
        self._kinds = (
            () if changed else tuple(k for k in ("inputs", "outputs") if k in orders.kinds)
        )
        self._digests: list[tuple[TensorName, bool, Tensor]] = []
        """Tensors of the step, whether of a first pass, and their digests."""
        self.differing: set[InexactTensor] = set()

    def begins(self, call: WatchedCall) -> None:
        """A module is called."""
        if "inputs" in self._kinds:
            self._note("inputs", given_to(call), call)

    def ends(self, call: WatchedCall) -> None:
        """A module returned."""
        module = call.fields.get("module")
        if "outputs" in self._kinds and isinstance(module, Ref):
            self._note("outputs", {module.name: call.fields.get("output")}, call)

    def end_step(self) -> None:
        """A step closes: compare the digests."""
        first: dict[TensorName, set[int]] = {}
        again: list[tuple[TensorName, int]] = []
        for device in {digest.device for _, _, digest in self._digests}:
            here = [each for each in self._digests if each[2].device == device]
            numbers = torch.stack([digest for _, _, digest in here]).tolist()
            for (name, is_first, _), number in zip(here, numbers, strict=True):
                if is_first:
                    first.setdefault(name, set()).add(number)
                else:
                    again.append((name, number))
        self._digests.clear()
        says = "recomputed for the backward pass with other numbers than in the forward pass"
        for name, number in again:
            if name in first and number not in first[name]:
                self.differing.add(InexactTensor(name, "recomputed", says))

    def _note(self, kind: str, made: Mapping[str, Any], call: WatchedCall) -> None:
        now, is_first = call.context, is_forward()
        for name, held in _local(made):
            of = TensorName(kind, name, now.step, now.microbatch)
            self._digests.append((of, is_first, digests([held])[0]))


def _local(made: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The rank's part of each tensor."""
    for name, value in made.items():
        held = held_here(value) if isinstance(value, Tensor) else None
        if held is not None:
            yield name, held.detach()

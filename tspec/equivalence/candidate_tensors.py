"""Merges each tensor of the candidate by the layout, under the reference's name, and compares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from tspec.equivalence.compare import Comparer, Fault, TensorComparison, is_finite
from tspec.equivalence.merge import Merged
from tspec.equivalence.recording import Recording, TensorName
from tspec.equivalence.shards import merge_by_layout, names_of, summand_axes
from tspec.equivalence.sides import Trial
from tspec.layout.places import stages_of


@dataclass(frozen=True, slots=True)
class JudgedTensor:
    """A tensor of the reference, and how the candidate's differs from it.

    `is_placed`: the layout has a place for it. `may_be_summands`: it may be that ranks hold
    summands of it. `merged` is kept of a gradient whose replicas differ, as the update may reduce
    it later.
    """

    name: TensorName
    comparison: TensorComparison | None = None
    faults: tuple[Fault, ...] = ()
    is_placed: bool = True
    may_be_summands: bool = False
    merged: Merged | None = None


@dataclass(frozen=True, slots=True)
class CandidateTensors:
    """The recordings of a candidate's ranks. `factors` scale all tensors of a kind."""

    trial: Trial
    reference: Recording
    ranks: Sequence[Recording]
    factors: Mapping[str, float]

    def is_expected(self, name: TensorName) -> bool:
        """True if the candidate should record a tensor of the reference under this name."""
        recorded = any(each is not None for each in self._held(name))
        if not recorded and name.kind == "input_grads" and _is_known(name, self.ranks):
            return False
        return not _comes_from_a_stage(self.trial, name, self.reference)

    def are_finite(self, name: TensorName) -> bool:
        """True if what the ranks recorded of a tensor is finite."""
        return all(each is None or is_finite(each) for each in self._held(name))

    def judged(self, name: TensorName, comparer: Comparer, data: frozenset[str]) -> JudgedTensor:
        """Merge and compare a tensor. `data` are the axes over which the batch is cut."""
        merged = self.merged(name)
        if merged is None:
            return JudgedTensor(name, is_placed=False)
        misfits = any(comparer.faults(name, merged))
        may_be_summands = False
        for axes in summand_axes(self.trial, name, data):
            may_be_summands |= misfits or name.kind == "output_grads"
            added_up = self.merged(name, axes) if misfits else None
            if added_up is not None and comparer.is_nearer(name, added_up, merged):
                merged = added_up
        return JudgedTensor(
            name,
            None if merged.tensor is None else comparer.compared(name, merged.tensor),
            tuple(comparer.faults(name, merged)),
            may_be_summands=may_be_summands,
            merged=merged if name.kind == "param_grads" and merged.spreads else None,
        )

    def merged(self, name: TensorName, summand: frozenset[str] = frozenset()) -> Merged | None:
        """The tensor that the ranks' shards make; None without a place in the layout.

        Ranks along the axes `summand` hold summands of it.
        """
        held = self._held(name)
        if name.kind in self.factors:
            factor = self.factors[name.kind]
            held = [None if each is None else each.double() * factor for each in held]
        full = self.reference.shape(name)
        return merge_by_layout(self.trial, name, full, held, self.ranks, summand)

    def _held(self, name: TensorName) -> list[Tensor | None]:
        """The tensor that each rank recorded under a name; None if it recorded none."""
        names = names_of(self.trial, name)
        return [
            next((each.tensors[of] for of in names if of in each.tensors), None)
            for each in self.ranks
        ]


def _is_known(name: TensorName, candidate: Sequence[Recording]) -> bool:
    """True if every rank has seen this input before under another name.

    Its gradient is recorded under that name.
    """
    calls = (each.modules[name.module] for each in candidate if name.module in each.modules)
    given = [each for call in calls for each in call.inputs if each.name == name.name]
    return bool(given) and all(each.takes for each in given)


def _comes_from_a_stage(trial: Trial, name: TensorName, reference: Recording) -> bool:
    """True if the input of a model comes from another pipeline stage: the layout places the model's
    output on a later stage.
    """
    call = reference.modules.get(name.module)
    if name.kind not in ("inputs", "input_grads") or call is None or call.parent:
        return False
    named = stages_of(trial.layout, name.module)
    has_stages = trial.sizes.of("pp") > 1 if named else False
    return has_stages and all((each.number, each.chunk) != (0, 0) for each in named)

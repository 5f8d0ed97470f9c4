"""Compares merged tensors of the candidate with the reference's, each by its own tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, isfinite, prod, sqrt
from types import MappingProxyType

import torch
from torch import Tensor

from tspec.equivalence.evidence import NONE, Evidence, evidence, multiple, times
from tspec.equivalence.merge import Merged, MergeFault, Spread
from tspec.equivalence.recording import EXACT, Sketched, TensorName
from tspec.equivalence.sketch import margin, rounding, standard_error
from tspec.equivalence.tolerances import Allowed, allowed, number
from tspec.equivalence.updates import undetermined
from tspec.layout.text import ranks_text
from tspec.resolve.program.trials import Noise, Tolerance

Tensors = Mapping[TensorName, Tensor]
FEW = 10
"""The round-off of a buffer of n numbers may exceed that of the samples by the factor 1 + FEW / n."""
OUTLYING = 1000
"""The ratio to the median input from which on an input does not count for the size of inputs."""
_MEANS = {"missing reduction": "so a reduction is missing", "stale": "so it was not updated"}
"""The faults of the code that evidence about replicas suggests."""


@dataclass(frozen=True, slots=True)
class TensorComparison:
    """One tensor of both sides.

    `order` is its place in the reference's run. `error` and `tolerated` are Frobenius norms of the
    difference, relative to the norm of the reference. If they are estimated from sketches,
    `standard_error` is their relative standard error. `epsilon` is the machine epsilon of the
    tensor's dtype. `norm` and `made` are the norms of the reference and of the candidate.
    """

    name: TensorName
    order: int
    error: float
    tolerated: float
    epsilon: float
    evidence: Evidence = NONE
    standard_error: float = 0.0
    norm: float = 0.0
    made: float = 0.0

    @property
    def times(self) -> float:
        """The error divided by the tolerated error."""
        if self.error in (0, inf):
            return self.error
        return self.error / self.tolerated if self.tolerated else inf

    @property
    def differs(self) -> bool:
        """True if the error exceeds the tolerance."""
        return self.times > 1

    @property
    def tells(self) -> bool:
        """True if a wrong tensor would differ. False for a tensor that is round-off alone."""
        return self.tolerated <= 1


@dataclass(frozen=True, slots=True)
class Fault:
    """Shards of one tensor that do not fit together, replicas that disagree, or a norm that is not
    that of the gradients.

    `times` is the difference divided by the tolerance.
    """

    name: TensorName
    order: int
    fault: MergeFault
    times: float = inf
    evidence: Evidence = NONE


class Comparer:
    """Compares tensors with those of one reference and of its perturbed runs.

    The tensors named in `sketched` are sketches. Raises ValueError for a tolerance without a
    meaning.
    """

    def __init__(
        self,
        reference: Tensors,
        samples: Sequence[Tensors],
        tolerance: Tolerance,
        sketched: Mapping[TensorName, Sketched] = MappingProxyType({}),
    ) -> None:
        self._reference = reference
        self._samples = samples
        self._tolerance = tolerance
        self._sketched = sketched
        self._order = {name: number for number, name in enumerate(reference)}
        self._coarsest = self._coarsest_outputs()
        self._sizes = dict(self._rms())

    def compared(self, name: TensorName, candidate: Tensor) -> TensorComparison:
        """Compare a merged tensor with the reference of that name. Both have one shape."""
        reference = self._reference[name].double()
        difference = _distance(candidate, reference)
        scale, limit = self._scale(name), self._limit(name)
        if name.kind == "buffers" and self._is_earlier(name, candidate):
            limit = self._limit(name, averages=False)
        order, epsilon, sketched = self._order[name], self._epsilon(name), name in self._sketched
        if difference == inf:
            why = evidence(reference, candidate, inf, {})
            return TensorComparison(name, order, inf, _ratio(limit, scale), epsilon, why)
        found = TensorComparison(
            *(name, order, _ratio(difference, scale), _ratio(limit, scale), epsilon),
            standard_error=standard_error(self._shape(name)) if sketched else 0.0,
            norm=_norm(reference),
            made=_norm(candidate),
        )
        if not found.differs:
            return found
        is_estimate = found.standard_error > 0
        why = evidence(reference, candidate, limit, self._earlier(name), is_estimate)
        return replace(found, evidence=why)

    def faults(self, name: TensorName, merged: Merged) -> Iterator[Fault]:
        """The faults of the shards of a tensor."""
        order = self._order[name]
        for fault in merged.faults:
            yield Fault(name, order, fault)
        for each in merged.spreads:
            limit = 0.0 if name.kind in EXACT else self._limit(name)
            if not each.difference <= limit:
                why = self._of_replicas(name, merged, len(each.ranks))
                said = (
                    f"{_disagree(each)}; {why.says}, {_MEANS[why.suggests]}"
                    if why.says
                    else _disagree(each)
                )
                times = _ratio(each.difference, limit)
                yield Fault(name, order, MergeFault("replicas", said), times, why)

    def is_nearer(self, name: TensorName, merged: Merged, other: Merged) -> bool:
        """True if a merged tensor is nearer to the reference than another one."""
        if merged.tensor is None or other.tensor is None:
            return False
        reference = self._reference[name].double()
        return _distance(merged.tensor, reference) < _distance(other.tensor, reference)

    def reduced(self, name: TensorName, merged: Merged) -> TensorComparison:
        """The sum or mean of replicas that differ, compared with the reference."""
        assert merged.summed is not None
        ranks = max(len(each.ranks) for each in merged.spreads)
        made = (self.compared(name, each) for each in (merged.summed, merged.summed / ranks))
        return min(made, key=lambda each: each.error)

    def _of_replicas(self, name: TensorName, merged: Merged, ranks: int) -> Evidence:
        """The evidence in replicas that differ: some hold earlier values, or all lack a reduction.

        A replica that equals an earlier reference is stale. Replicas that lack a reduction add up
        to the reference, or have it as their mean. If the reference is their mean, no single
        replica may be the reference: otherwise the other ones are within twice the tolerance and
        prove nothing. The same holds for state kept from step to step: otherwise the other ones
        stayed at zero. A replica without its reduction may also lack its scaling: then the sum is a
        multiple of the reference.
        """
        first, last, summed = merged.tensor, merged.last, merged.summed
        if first is None or last is None or summed is None:
            return NONE
        for when, tensor in self._earlier(name).items():
            if self._has_changed(name, tensor) and self._is_of(name, tensor, first, last):
                return Evidence("stale", f"where they differ one has the reference of {when}")
        reference, limit = self._reference[name].double(), self._limit(name)
        is_right = any(float((each - reference).norm()) <= limit for each in (first, last))
        made = {} if is_right and name.kind in EXACT else {"sum": summed}
        if not is_right:
            made["mean"] = summed / ranks
        for how, whole in made.items():
            if float((whole - reference).norm()) <= limit:
                return Evidence("missing reduction", f"the {how} of the replicas is the reference")
        if all(multiple(reference, each, limit) is None for each in (first, last)):
            factor = multiple(reference, summed, limit)
            if factor is not None:
                says = f"the sum of the replicas is {times(factor)} times the reference"
                return Evidence("missing reduction", says)
        return NONE

    def _has_changed(self, name: TensorName, earlier: Tensor) -> bool:
        """The reference differs from an earlier one: constants, such as positions, prove nothing."""
        may = rounding(self._shape(name)) * float(earlier.norm()) if name in self._sketched else 0.0
        return float((self._reference[name].double() - earlier).norm()) > may

    def _is_of(self, name: TensorName, earlier: Tensor, first: Tensor, last: Tensor) -> bool:
        """Wherever two replicas differ, one has an earlier number, exactly; of sketches one of both is the earlier one."""
        if name in self._sketched and standard_error(self._shape(name)):
            may = rounding(self._shape(name)) * float(earlier.norm())
            return any(float((each - earlier).norm()) <= may for each in (first, last))
        apart = first != last
        found = bool(apart.any()) and bool(((first == earlier) | (last == earlier))[apart].all())
        return found and bool(earlier[apart].any())  # else both are zero

    def _earlier(self, name: TensorName) -> Mapping[str, Tensor]:
        """The reference's earlier tensors of that name, and its first value."""
        found = {}
        for each, tensor in self._reference.items():
            if (each.kind, each.name, each.call) == (name.kind, name.name, name.call):
                if each == name:
                    break
                alike = (each in self._sketched) == (name in self._sketched)
                if alike and self._shape(each) == self._shape(name):
                    when = f"micro-batch {each.microbatch}" * (each.microbatch > 0)
                    step = f"step {each.step}" if each.step else "the beginning"
                    found[", ".join(filter(None, (step, when)))] = tensor.double()
        return found

    # --- round-off --------------------------------------------------------------------------------

    def _is_earlier(self, name: TensorName, candidate: Tensor) -> bool:
        """A buffer is an earlier one, as far as its own noise tells: it was not updated.

        The noise of what a buffer is computed from may be larger than the change of a step.
        """
        limit = self._limit(name, averages=False)
        return any(_distance(candidate, each) <= limit for each in self._earlier(name).values())

    def _limit(self, name: TensorName, averages: bool = True) -> float:
        """The tolerated Frobenius norm of the difference; of an estimated one with the errors of estimates.

        `averages`: also as far as what the tensor is computed from may differ.
        """
        shape = self._shape(name)
        may: Allowed = allowed(self._tolerance, lambda noise: self._noise(name, noise, averages))
        limit = may.relative * self._scale(name) + may.absolute * sqrt(prod(shape))
        if name.kind == "params":
            limit += self._undetermined(name)
        if name not in self._sketched:
            return limit
        return limit * (1 + margin(shape)) + rounding(shape) * _norm(self._reference[name])

    def _scale(self, name: TensorName) -> float:
        """The norm to which an error is relative: that of the reference, or the round-off that
        counts as zero.
        """
        return max(_norm(self._reference[name]), self._zero(name))

    def _zero(self, name: TensorName) -> float:
        """The norm up to which a tensor is round-off alone, from the size of the tensors of its
        kind.
        """
        size = self._sizes[name.kind, name.key, name.step]
        return self._epsilon(name) * size * sqrt(prod(self._shape(name)))

    def _noise(self, name: TensorName, noise: Noise, averages: bool = True) -> float:
        """The relative change of the reference under perturbed inputs (TTrace, section 4.5)."""
        reference = self._reference[name].double()
        scale = self._scale(name)
        floor = self._epsilon(name) if noise.floor is None else number(noise.floor)
        moved = [_distance(each[name], reference) for each in self._samples]
        moved.append(floor * scale)
        if _norm(reference) <= self._zero(name):
            moved.append(scale)
        if averages:
            averaged = (self._noise(each, noise) * scale for each in self._averaged(name))
            moved.append(min(max(averaged, default=0.0), self._most_of_few(name) * max(moved)))
        if name.kind == "gradient_norms":
            moved.append(self._noise_of_norm(name.step) * scale)
        gradient = TensorName("param_grads", name.subject, name.step)
        if name.kind == "states" and self._is_finite(gradient):
            part = self._noise(gradient, noise)
            moved.append(((1 + part) ** 2 - 1) * scale)  # of its squares; less of a mean of it
        return _ratio(max(moved), scale)

    def _most_of_few(self, name: TensorName) -> float:
        """The factor by which round-off may exceed that of the samples. It is large for a tensor of
        few numbers, since their errors may cancel out in each of a few samples.
        """
        return inf if name.kind == "losses" else 1 + FEW / max(prod(self._shape(name)), 1)

    def _noise_of_norm(self, step: int) -> float:
        """The relative change of the norm of all gradients if each gradient changes as in a
        perturbed run, all in one direction.

        The norm itself is one number in a few samples, which prove little.
        """
        squares = {
            name: _norm(tensor) ** 2
            for name, tensor in self._reference.items()
            if (name.kind, name.step) == ("param_grads", step)
        }
        moved = (
            sum(abs(_norm(each[name]) ** 2 - square) for name, square in squares.items())
            for each in self._samples
        )
        return _ratio(max(moved, default=0.0), 2 * sum(squares.values()))

    def _averaged(self, name: TensorName) -> Iterator[TensorName]:
        """The tensor that a loss or a buffer averages: the last output before a loss, the module's
        input for a buffer. A mean has no larger relative error than its elements.

        A few samples of few numbers prove little, since their errors may cancel out.
        """
        if name.kind == "losses":
            yield from islice(
                (
                    each
                    for each in reversed(tuple(self._reference))
                    if each.kind == "outputs" and self._order[each] < self._order[name]
                ),
                1,
            )
        elif name.kind == "buffers" and self._epsilon(name):
            holder = name.name.rpartition(".")[0]
            for each in self._reference:
                if (each.kind, each.step) == ("inputs", name.step) and each.module == holder:
                    yield each

    def _undetermined(self, name: TensorName) -> float:
        """The tolerance of a parameter that follows from the tolerance of its gradient.

        The relative error of an update is at most that of the gradient (equal under SGD, smaller
        under Adam), up to a reversal: Adam's first update has one size, with the sign of the
        gradient.
        """
        gradient = TensorName("param_grads", name.name, name.step)
        before = TensorName("params", name.name, name.step - 1)
        if not self._is_finite(gradient) or before not in self._reference:
            return 0.0
        if not self._sketched.keys().isdisjoint((name, gradient, before)):
            made = self._reference.get(replace(name, kind="updates"))
            return 0.0 if made is None else undetermined(made, self._limit(gradient))
        held = self._reference[gradient].double()
        may = torch.full_like(held, self._limit(gradient) / sqrt(max(held.numel(), 1)))
        for each in self._samples:
            may = torch.maximum(may, (each[gradient].double() - held).abs())
        part = torch.where(may < 2 * held.abs(), may / held.abs(), 2.0)
        update = self._reference[name].double() - self._reference[before].double()
        return float((update * part).norm())

    def _is_finite(self, name: TensorName) -> bool:
        """True if the reference has a tensor, and no update was skipped for it."""
        held = self._reference.get(name)
        return held is not None and is_finite(held)

    # --- sizes of the reference's tensors ---------------------------------------------------------

    def _shape(self, name: TensorName) -> tuple[int, ...]:
        held = self._sketched.get(name)
        return tuple(self._reference[name].shape) if held is None else held.shape

    def _epsilon(self, name: TensorName) -> float:
        """The epsilon of the tensor's dtype; 0 for integers. For a buffer, it is at least that of
        the coarsest output in the step, from which the buffer may be computed.
        """
        held = self._sketched.get(name)
        dtype = self._reference[name].dtype if held is None else getattr(torch, held.dtype)
        own = float(torch.finfo(dtype).eps) if dtype.is_floating_point else 0.0
        return (
            max(own, self._coarsest.get(name.step, 0.0)) if own and name.kind == "buffers" else own
        )

    def _coarsest_outputs(self) -> dict[int, float]:
        """The coarsest epsilon of a module's outputs in each step."""
        found: dict[int, float] = {}
        for name in self._reference:
            if name.kind == "outputs":
                found[name.step] = max(found.get(name.step, 0.0), self._epsilon(name))
        return found

    def _rms(self) -> Iterator[tuple[tuple[str, str, int], float]]:
        """The root mean square of the elements of each kind in each step; for states, of each key.

        Only tensors that round-off changes count: whole numbers give no size, nor do masks among
        the inputs.
        """
        norms: dict[tuple[str, str, int], list[tuple[float, int]]] = {}
        for name, tensor in self._reference.items():
            of = norms.setdefault((name.kind, name.key, name.step), [])
            norm, numel = _norm(tensor), prod(self._shape(name))
            if self._epsilon(name) and isfinite(norm) and numel:
                of.append((norm, numel))
        for key, found in norms.items():
            alike = _without_masks(found) if key[0] == "inputs" else found
            squares = sum(norm**2 for norm, _ in alike)
            yield key, sqrt(squares / max(sum(numel for _, numel in alike), 1))


def _without_masks(found: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Norms and numbers of elements, without those that are far larger than half of them."""
    sizes = sorted(norm / sqrt(numel) for norm, numel in found if norm)
    most = OUTLYING * sizes[(len(sizes) - 1) // 2] if sizes else 0.0
    return [each for each in found if each[0] / sqrt(each[1]) <= most]


def _disagree(spread: Spread) -> str:
    relative = _ratio(spread.difference, spread.norm)
    return f"replicas on {ranks_text(spread.ranks)} differ by {relative:.1e} of the tensor"


def _norm(tensor: Tensor) -> float:
    """The Frobenius norm of the finite elements. Masks hold infinity at hidden positions."""
    held = tensor.double()
    norm = float(held.norm())
    return norm if isfinite(norm) else float(held[held.isfinite()].norm())


def _distance(left: Tensor, right: Tensor) -> float:
    """The Frobenius norm of a difference, infinite if one side alone is not finite somewhere.

    Equal infinities do not differ, nor do two elements that are not a number.
    """
    difference = left.double() - right.double()
    norm = float(difference.norm())
    if isfinite(norm):
        return norm
    alike = (left == right) | (left.isnan() & right.isnan())
    return float(difference.masked_fill(alike, 0).norm().nan_to_num(inf, inf))


def is_finite(tensor: Tensor) -> bool:
    """True if all elements are numbers and none is infinite."""
    return bool(tensor.double().isfinite().all())


def _ratio(part: float, whole: float) -> float:
    if part == 0:
        return 0.0
    return part / whole if whole else inf

"""Compares the norm of the gradients that a job reports with the norm of its own gradients.

Both numbers come from one run, so round-off in activations and gradients does not separate them:
the tolerance is a few roundings of the norm, in any precision of the model. The reference shows
whether the reported norm is that of the recorded gradients, or a constant multiple of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, nan, sqrt

import torch

from tspec.equivalence.compare import Fault
from tspec.equivalence.evidence import Evidence
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.recording import GRADIENT_SQUARES, Recording, TensorName
from tspec.equivalence.shards import names_of, shards_held
from tspec.equivalence.sides import Trial
from tspec.layout.places import tied_to
from tspec.layout.shards import UnevenShards
from tspec.layout.sizes import UnknownSize
from tspec.layout.text import ranks_text

OF_NORM, OF_SUMS = 2, 16
"""Tolerated roundings: of the dtype of the norm, and of sums in float32."""
ROUNDING = 0.05
"""The distance of the reference's factor from 1 that may be round-off: a kernel that adds up many
squares one by one in float32 loses some. Over a shard it loses less than over a whole tensor.
"""


@dataclass(frozen=True, slots=True)
class NormComparison:
    """A norm that ranks of the candidate report, beside that of its gradients.

    `order` is the place of the norm in the reference's run. `own` is the norm of the candidate's
    gradients. `factor` is the reference's reported norm as a multiple of that of its gradients.
    """

    name: TensorName
    order: int
    ranks: tuple[int, ...]
    reported: float
    own: float
    factor: float
    tolerated: float

    @property
    def off(self) -> float:
        """The relative distance of the reported norm from the one that the reference's factor gives.

        If the factor is 1 but for round-off, each number between the two is right: shards are
        smaller than whole tensors.
        """
        lowest, highest = self.factor, self.factor
        if abs(self.factor - 1) <= ROUNDING:
            lowest, highest = min(self.factor, 1.0), max(self.factor, 1.0)
        found = _ratio(self.reported, self.own)
        return max(1 - found / lowest, found / highest - 1, 0.0) if isfinite(found) else inf

    @property
    def differs(self) -> bool:
        """True if the reported norm is not that of the gradients."""
        return not self.off <= self.tolerated

    @property
    def fault(self) -> Fault:
        """The finding that the norm is not that of the gradients."""
        report = "reports" if len(self.ranks) == 1 else "report"
        says = f"{ranks_text(self.ranks)} {report} {self.reported:.9g}, and the gradients of all ranks have the norm {self.own:.9g}"
        if abs(self.factor - 1) > ROUNDING:
            says += f"; the reference reports {self.factor:.9g} times the norm of its gradients"
        says += f": off by {self.off:.2g}, tolerated {self.tolerated:.2g}"
        why = Evidence(factor=_ratio(self.reported, self.own) / self.factor)
        fault = MergeFault("norm", says)
        return Fault(self.name, self.order, fault, self.off / self.tolerated, why)


def norm_comparisons(
    trial: Trial,
    reference: Recording,
    samples: Sequence[Recording],
    candidate: Sequence[Recording],
) -> Iterator[NormComparison]:
    """Compare each number that ranks of the candidate report as a norm of gradients."""
    for order, name in enumerate(reference.tensors):
        if name.kind != "gradient_norms":
            continue
        tolerated = _tolerated(reference.tensors[name].dtype)
        factor = _factor(trial, name, (reference, *samples), tolerated)
        own = _norm_over_ranks(trial, name, reference, candidate, tolerated)
        if factor is None or own is None:
            continue
        for reported, ranks in _reported(name, candidate).items():
            if isfinite(reported) or isfinite(own):
                yield NormComparison(name, order, ranks, reported, own, factor, tolerated)


def _reported(name: TensorName, candidate: Sequence[Recording]) -> dict[float, tuple[int, ...]]:
    """Each number that ranks report as a norm, with these ranks."""
    found: dict[float, tuple[int, ...]] = {}
    for rank, each in enumerate(candidate):
        if name in each.tensors:
            reported = float(each.tensors[name])
            of = nan if isnan(reported) else reported
            found[of] = (*found.get(of, ()), rank)
    return found


def _ratio(reported: float, own: float) -> float:
    return reported / own if own else inf


def _tolerated(dtype: torch.dtype) -> float:
    """The tolerated relative distance of a norm of a dtype from the exact norm."""
    own = torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
    return OF_NORM * own + OF_SUMS * torch.finfo(torch.float32).eps


def _factor(
    trial: Trial, name: TensorName, runs: Sequence[Recording], tolerated: float
) -> float | None:
    """The factor of the reference's norm. None if the norm does not follow from the recorded
    gradients: a single run reports another norm, or the factor changes with perturbed inputs.
    """
    factors = [_factor_in(trial, name, each) for each in runs]
    known = [each for each in factors if each is not None and each and isfinite(each)]
    if len(known) < len(runs):
        return None
    first, *others = known
    steady = others or [1.0]
    return first if all(abs(each / first - 1) <= tolerated for each in steady) else None


def _factor_in(trial: Trial, name: TensorName, recording: Recording) -> float | None:
    """The factor in a run of the reference. Each tied tensor counts once."""
    squares = _squares(recording, name)
    if name not in recording.tensors or not squares:
        return None
    own = sqrt(sum(squares[each] for each in _untied(trial, squares)))
    return _ratio(float(recording.tensors[name]), own)


def _squares(recording: Recording, norm: TensorName) -> Mapping[str, float]:
    """The squared norm of each gradient that a rank holds for a norm."""
    return {
        name.name: float(square)
        for name, square in recording.tensors.items()
        if name == replace(norm, kind=GRADIENT_SQUARES, name=name.name)
    }


def _untied(trial: Trial, names: Mapping[str, float]) -> list[str]:
    """The names, without those of a tensor that another name before stands for."""
    found: list[str] = []
    for name in names:
        if not any(other in found for other in tied_to(trial.layout, name)):
            found.append(name)
    return found


def _norm_over_ranks(
    trial: Trial,
    norm: TensorName,
    reference: Recording,
    candidate: Sequence[Recording],
    tolerated: float,
) -> float | None:
    """The norm of the candidate's gradients, each element once. None if it is not known."""
    held = [_squares(each, norm) for each in candidate]
    whole = 0.0
    for name in _untied(trial, _squares(reference, norm)):
        of = TensorName("param_grads", name, norm.step)
        square = _square_over_ranks(trial, of, reference, candidate, held, tolerated)
        if square is None:
            return None
        whole += square
    return sqrt(whole)


def _square_over_ranks(
    trial: Trial,
    name: TensorName,
    reference: Recording,
    candidate: Sequence[Recording],
    held: Sequence[Mapping[str, float]],
    tolerated: float,
) -> float | None:
    """The squared norm of a gradient. None if a shard is missing, if ranks hold summands, or if
    replicas differ.
    """
    if name not in reference.tensors:
        return None
    try:
        shards = shards_held(trial, name, reference.shape(name))
    except (UnevenShards, UnknownSize):
        return None
    if not shards or len({each.summand for each in shards}) > 1:
        return None
    of_cut: dict[object, list[float]] = {}
    for each in shards:
        part = candidate[each.rank].parts.get(name.subject)
        if part is not None and part[0] == part[1]:
            continue
        names = (one.name for one in names_of(trial, name))
        square = next((held[each.rank][one] for one in names if one in held[each.rank]), None)
        if square is None:
            return None
        cut = each.cut if part is None else replace(each.cut, flat=part)
        of_cut.setdefault(cut, []).append(square)
    if any(max(each) - min(each) > tolerated * max(each) for each in of_cut.values()):
        return None
    return sum(each[0] for each in of_cut.values())

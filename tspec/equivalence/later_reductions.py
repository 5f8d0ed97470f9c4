"""Gradients that ranks reduce within the update, as a ZeRO optimizer that is written by hand does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from torch import Tensor

from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.recording import TensorName

CLEARLY = 10
"""The factor by which an update made from one rank's own gradient must exceed the tolerance to be evidence."""


def agreeing_later(
    comparisons: Iterable[TensorComparison], faults: Iterable[Fault]
) -> Set[TensorName]:
    """Gradients that the update itself reduces: ranks hold summands of them, and the parameters
    agree after the update.
    """
    misfits = tuple(faults)
    compared = {each.name for each in comparisons}
    apart = {each.name.step for each in misfits if each.name.kind == "params"}
    lacking = (each.name for each in misfits if _lacks_reduction(each))
    return {
        name
        for name in lacking
        if name.step not in apart and replace(name, kind="params") in compared
    }


def reduced_later(
    reference: Mapping[TensorName, Tensor],
    comparisons: Sequence[TensorComparison],
    faults: Iterable[Fault],
) -> Set[TensorName]:
    """Gradients of steps in which a parameter moved by one of them is right: the update adds the
    gradients up.

    A parameter is evidence if one rank's own gradient would have moved it elsewhere.
    """
    found = agreeing_later(comparisons, faults)
    by_name = {each.name: each for each in comparisons}
    steps = {name.step for name in found if _is_right(name, by_name, reference)}
    return {name for name in found if name.step in steps}


def _lacks_reduction(found: Fault) -> bool:
    return found.name.kind == "param_grads" and found.evidence.suggests == "missing reduction"


def _is_right(
    gradient: TensorName,
    comparisons: Mapping[TensorName, TensorComparison],
    reference: Mapping[TensorName, Tensor],
) -> bool:
    """True if the parameter of a gradient is right after the update, though one rank's own gradient
    would make it wrong.
    """
    made = comparisons[replace(gradient, kind="params")]
    own = comparisons.get(gradient)
    before = reference.get(replace(made.name, step=made.name.step - 1))
    if made.differs or own is None or before is None:
        return False
    update = float((reference[made.name].double() - before.double()).norm())
    return made.tolerated * made.norm * CLEARLY < own.error * update

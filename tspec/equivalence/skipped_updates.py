"""Finds updates that were skipped since gradients overflowed: on both sides, or on one side alone, which is a fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from tspec.equivalence.compare import Fault
from tspec.equivalence.launch import Failed
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.recording import Recording, SkippedUpdate, TensorName
from tspec.equivalence.sides import GRADIENTS_OF_ACTIVATIONS
from tspec.layout.text import ranks_text

GRADIENTS = ("param_grads", *GRADIENTS_OF_ACTIVATIONS)
"""Kinds that overflow with a scaled loss."""
MADE_BY_UPDATE = ("states", "gradient_norms")
"""Kinds that a rank may lack after a skipped update."""
READ_BY_UPDATE = ("param_grads",)
"""Kinds that a rank of torch lacks too: they are recorded when an update reads them."""


def refuse_the_brink(reference: Recording, samples: Iterable[Recording]) -> None:
    """Raises Failed if a perturbed run of the reference skips other updates than the reference.

    Then round-off decides whether a step overflows, and no tolerance is known for it.
    """
    for number, sample in enumerate(samples, 1):
        for each in sorted(reference.skipped ^ sample.skipped):
            has, lacks = "the reference", f"its perturbed run {number}"
            if each in sample.skipped:
                has, lacks = lacks, has
            raise Failed(
                f"{text(each)} is at the brink of overflow: {has} skipped its update, and {lacks} made it. "
                "Begin with another loss scale",
                "",
            )


def skipped_by_both(
    reference: Recording, candidate: Sequence[Recording]
) -> frozenset[SkippedUpdate]:
    """The updates that the reference and all ranks of the candidate skipped."""
    return reference.skipped.intersection(*(each.skipped for each in candidate))


def overflow_of(name: TensorName, skipped: Set[SkippedUpdate]) -> SkippedUpdate | None:
    """The skipped update to whose gradients a tensor belongs; None for any other tensor."""
    if name.kind not in GRADIENTS:
        return None
    return next((each for each in sorted(skipped) if each.holds(name)), None)


def skipped_alone(
    reference: Recording, candidate: Sequence[Recording], both: Set[SkippedUpdate]
) -> Iterator[Fault]:
    """The updates that were skipped, but not by the reference and all ranks of the candidate."""
    skipped = reference.skipped.union(*(each.skipped for each in candidate))
    for update in sorted(skipped - both):
        ranks = [rank for rank, each in enumerate(candidate) if update in each.skipped]
        others = [rank for rank in range(len(candidate)) if rank not in ranks]
        sides = "reference skipped it" if update in reference.skipped else "reference made it"
        skips = f"{ranks_text(ranks)} skipped the update" if ranks else ""
        makes = f"{ranks_text(others)} made the update" if others else ""
        message = ", ".join(filter(None, (skips, makes, f"and the {sides}")))
        name = TensorName("updates", "optimizer", *update)
        yield Fault(name, _order(update, reference), MergeFault("skipped", message))


def is_explained(fault: Fault, alone: Sequence[Fault]) -> bool:
    """True for a tensor that ranks lack since they skipped an update that the reference made."""
    name = fault.name
    return fault.fault.kind == "missing" and any(
        each.name.step == name.step
        and name.kind in (*MADE_BY_UPDATE, *(READ_BY_UPDATE if each.name.microbatch else ()))
        for each in alone
    )


def text(update: SkippedUpdate) -> str:
    """The place of a skipped update in the run."""
    place = f"step {update.step}"
    return f"{place}, micro-batch {update.microbatch}" if update.microbatch else place


def _order(update: SkippedUpdate, reference: Recording) -> int:
    """The place of an update in the reference's run: that of the last gradient before it."""
    names = list(enumerate(reference.tensors))
    before = [order for order, name in names if name.step <= update.step]
    gradients = [order for order, name in names if name.kind in GRADIENTS and update.holds(name)]
    return max(gradients or before, default=0)

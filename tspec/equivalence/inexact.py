"""Finds tensors that do not equal other tensors of the same rank, on either side.

A model's copy of a main parameter is that parameter rounded, and a recomputation repeats the first
pass. Both are exact, so no tolerance applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tspec.equivalence.compare import Fault
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.recording import InexactTensor, Recording
from tspec.equivalence.sides import Trial
from tspec.layout.text import ranks_text


def inexact_tensors(
    trial: Trial, reference: Recording, candidate: Sequence[Recording]
) -> Iterator[Fault]:
    """The tensors of compared kinds that are not exact, each once for the reference and once for
    the ranks of the candidate that say the same.
    """
    orders = {name: order for order, name in enumerate(reference.tensors)}
    found: dict[InexactTensor, list[str]] = {}
    for each in reference.inexact:
        found.setdefault(each, []).append("the reference")
    ranks: dict[InexactTensor, list[int]] = {}
    for rank, recording in enumerate(candidate):
        for each in recording.inexact:
            ranks.setdefault(each, []).append(rank)
    for each, of in ranks.items():
        found.setdefault(each, []).append(ranks_text(of))
    for each in sorted(found, key=lambda each: (orders.get(each.name, len(orders)), each)):
        if trial.compares(each.name):
            where = " and ".join(found[each])
            fault = MergeFault(each.check, f"{each.says}, on {where}")
            yield Fault(each.name, orders.get(each.name, len(orders)), fault)

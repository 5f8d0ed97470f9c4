"""Selects the drafts to show, the most informative first.

Superficial drafts are removed (TrainCheck, section 3.7), then drafts that others imply: general
cases by z3, and orders of events by transitive reduction, since an order is no matter of logic on
one instance.
"""

from __future__ import annotations

from collections.abc import Sequence

from tspec.infer.drafts import Draft
from tspec.infer.heads import unsampled

MOST_SHOWN = 80


def reduce_sequences(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Drop `A before C` if there are `A before B` and `B before C`, and B is in every step that has
    C.
    """
    pairs = {
        tuple(d.claim.expect.split(" before ")): d for d in drafts if d.claim.relation == "sequence"
    }
    implied = {
        (a, c)
        for a, c in pairs
        if any((a, b) in pairs and (b, c) in pairs for b in {x for pair in pairs for x in pair})
    }
    return tuple(
        d
        for d in drafts
        if d.claim.relation != "sequence" or tuple(d.claim.expect.split(" before ")) not in implied
    )


def prefer_exact(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Drop `contains E` if the number of calls of E is known, and weaker forms of one claim.

    A tensor that changes only in the optimizer needs no second rule that it changes only in a
    forward. A pair of conditions that differ only in a class keeps the general one. A call in every
    step is in every epoch too.
    """
    counted = {
        (d.claim.head, d.claim.expect) for d in drafts if d.claim.expect.startswith("count(calls(")
    }
    general = {(d.claim.head, d.claim.expect) for d in drafts if d.when is None}
    stepwise = {
        d.claim.expect.removeprefix("contains ").removeprefix("count(calls(").partition("))")[0]
        for d in drafts
        if d.claim.head.window == "each step" and not d.when
    }
    kept = []
    for draft in drafts:
        head, expect = draft.claim.head, draft.claim.expect
        name = expect.removeprefix("contains ")
        if expect.startswith("contains ") and (head, f"count(calls({name})) == 1") in counted:
            continue
        if head.window == "each epoch" and name in stepwise:
            continue
        if draft.when is not None and (head, expect) in general:
            continue
        kept.append(draft)
    return tuple(kept)


def rank(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """Most telling first: surprise, then generality (fewer conditions), then support."""
    return tuple(
        sorted(
            drafts, key=lambda d: (-d.claim.surprise, _conditions(d), -_magnitude(d.held), d.key)
        )
    )


def _conditions(draft: Draft) -> int:
    when = unsampled(draft.when)
    return 0 if when is None else 1 + when.count(" and ") + when.count(" or ")


def _magnitude(count: int) -> int:
    """Support by powers of ten, so that a few instances more change no order."""
    return len(str(count))

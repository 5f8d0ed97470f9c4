"""Selects rules that may be decided later than their window ends, when the values that they read have arrived from a device."""

from __future__ import annotations

from tspec.builtin.actions import ACTIONS
from tspec.builtin.features import OF_ELEMENTS
from tspec.builtin.kinds import PASSING
from tspec.plan.events import counted
from tspec.plan.reads import Reads
from tspec.resolve.program import rules as r


def is_postponable(rule: r.Rule, reads: Reads) -> bool:
    """True if all that a rule reads can be sampled as its window ends, and no action is due at once.

    Such a rule reads elements of tensors that subjects have, or the call of its window, on one rank. It reads no
    other calls: they are dropped with their step.
    """
    return (
        rule.window.event is not None
        and not (rule.window.event.filters or rule.across or rule.window.once)
        and isinstance(rule.expect, r.Holds)
        and not any(counted(rule))
        and not any(each.looked_up for each in reads.call_fields)
        and all(frame != "first" and kind not in PASSING for frame, kind in reads.kinds)
        and _reads_elements(reads)
        and not any(ACTIONS[each.action].acts and not each.conditional for each in rule.responses)
    )


def _reads_elements(reads: Reads) -> bool:
    """Elements of some tensor are read, and each feature is one that a source gives."""
    features = {name for column in reads.columns for name in column.features}
    features |= {name for each in reads.call_fields for name in each.features}
    sampled = all(column.frame != "first" for column in reads.columns)
    return sampled and bool(features & {*OF_ELEMENTS}) and not any(map(_is_made_here, features))


def _is_made_here(feature: str) -> bool:
    """The feature is computed from the live tensor: per row, cast, of a difference."""
    return "/" in feature or "@" in feature

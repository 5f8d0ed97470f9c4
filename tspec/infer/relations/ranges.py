"""*Ranges*: the inputs of models and losses have the mean, the spread and the share of zeros that
they have in sound runs.

Targets that are the places of samples in their batch depend on its size.

Data that were normalised twice or not at all, lost labels, targets of another kind, and masks of
other positions differ in these. A range is drafted only if it hardly moved in all runs, and is
widened by a factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tspec.infer.heads import SAMPLED, Claim, RuleHead, both
from tspec.infer.numbers import GivenTensor
from tspec.infer.relations.learning import number
from tspec.infer.survey import Survey

STEADY = 2.0
"""The largest allowed ratio of the largest spread to the smallest."""
WIDER = 2.0
"""The factor by which a sound spread may be larger, or smaller."""
OF_SPREAD = 0.25
"""The distance by which a mean may lie outside of its range, in spreads."""
OF_ALL = 0.1
"""The distance by which a share of zeros may lie outside of its range."""

OTHER = (
    "`{what}` has another spread, mean or share of zeros than in sound runs: normalised twice or not at all, other classes,"
    " another mask or padding."
)


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Bounds on the inputs of models and on the targets of losses."""
    several = len({each.model for each in survey.numbers.given if each.model is not None}) > 1
    return tuple(
        claim
        for each in survey.numbers.given
        if survey.event(each.event) is not None
        for claim in _of(each, several)
    )


def _of(given: GivenTensor, several: bool) -> Iterator[Claim]:
    x = f"c.{given.field}" if given.item is None else f"c.{given.field}[{given.item}]"
    bounds = _bounds(given, x)
    if not bounds:
        return
    head = RuleHead((f"c in calls({given.event})",), None, None, ())
    conditions = [f"phase == {given.phase}", SAMPLED if given.phase == "train" else None]
    if given.model is not None:
        conditions.append("c.module.root")
        if several:
            conditions.append(f'c.module.name == "{given.model}"')
    if given.item is not None:
        conditions.append(f"count(c.{given.field}) > {given.item}")
    conditions.append(f"numel({x}) > 1")
    of_model = f" of {given.model}" if several and given.model else ""
    item = "" if given.item is None else f" {given.item}"
    name = f"{given.field}{item} of {given.event}{of_model} in {given.phase} keeps its range"
    breaks = OTHER.format(what=x.removeprefix("c."))
    yield Claim("ranges", head, bounds, breaks, both(*conditions), surprise=3, name=_plain(name))


def _bounds(given: GivenTensor, x: str) -> str | None:
    """Bounds on features that hardly varied; None where no feature was steady. The numbers from 0 to
    `n - 1` have those of their size.
    """
    spread, parts = given.std, []
    if _are_places(given):
        return f"max({x}) == numel({x}) - 1 and 2 * mean({x}) == numel({x}) - 1"
    if spread.low > 0 and spread.high <= STEADY * spread.low:
        parts.append(_between(f"std({x})", spread.low / WIDER, spread.high * WIDER))
        if given.mean.width <= spread.high:
            margin = given.mean.width + OF_SPREAD * spread.high
            parts.append(_between(f"mean({x})", given.mean.low - margin, given.mean.high + margin))
        if given.zeros.width <= OF_ALL:
            margin = given.zeros.width + OF_ALL
            low, high = given.zeros.low - margin, given.zeros.high + margin
            parts.append(
                _between(f"zeros({x})", low if low > 0 else None, high if high < 1 else None)
            )
    return both(*parts)


def _are_places(given: GivenTensor) -> bool:
    """True of the numbers from 0 to `n - 1`, as the targets of samples that are compared with each other:
    they depend on the size of the batch alone.
    """
    ends = ((given.mean.low, given.std.low), (given.mean.high, given.std.high))
    return all(
        mean > 0 and math.isclose(std, math.sqrt(mean * (mean + 1) / 3), rel_tol=1e-6)
        for mean, std in ends
    )


def _between(value: str, low: float | None, high: float | None) -> str | None:
    least = None if low is None else f"{value} >= {number(low)}"
    return both(least, None if high is None else f"{value} <= {number(high)}")


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)

"""Turns claims and their evidence into drafts: deduces a precondition, or gives the reason why
there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tspec.infer.evidence import ClaimEvidence, key_of
from tspec.infer.heads import Claim
from tspec.infer.preconditions import LEAST_SUPPORT, Condition, deduce

LEAST_RUNS = 2
"""The least number of runs in which a fact that occurs once a run must recur."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A claim with its precondition.

    `held` counts the instances in which the claim held under the precondition. `broken` counts the
    instances that violate the claim if the precondition is left out.
    """

    claim: Claim
    when: str | None
    held: int
    broken: int

    @property
    def key(self) -> tuple[object, ...]:
        """The rule's parts, for comparison and a stable order."""
        head = self.claim.head
        window = head.window or ""
        return (head.subjects, head.across or "", window, self.when or "", self.claim.expect)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A claim that became no draft, and why."""

    claim: Claim
    reason: str
    held: int
    broken: int


def does_not_type(problem: str) -> str:
    """The reason why a claim that does not resolve is dropped."""
    return f"does not type: {problem}"


def judge(
    claims: Sequence[Claim], evidence: ClaimEvidence
) -> tuple[tuple[Draft, ...], tuple[Dropped, ...]]:
    """Each claim as a draft, or as dropped with its reason."""
    drafts: list[Draft] = []
    dropped: list[Dropped] = []
    for claim in claims:
        judged = _judge(claim, evidence)
        (drafts if isinstance(judged, Draft) else dropped).append(judged)  # type: ignore[arg-type]
    return tuple(drafts), tuple(dropped)


def _judge(claim: Claim, evidence: ClaimEvidence) -> Draft | Dropped:
    if (problem := evidence.untyped.get(key_of(claim))) is not None:
        return Dropped(claim, does_not_type(problem), 0, 0)
    column = evidence.columns[key_of(claim)]
    held, broken = column.true.bit_count(), column.false.bit_count()
    if not held:
        return Dropped(claim, "never seen to hold", held, broken)
    found = deduce(column.true, column.false, _conditions(claim, evidence))
    if found is None:
        return Dropped(claim, "no condition separates where it holds", held, broken)
    selected = column.true & found.true
    for run, instances in enumerate(evidence.runs[claim.head]):
        if instances and not selected & instances:
            return Dropped(claim, f"not seen in run {run + 1}", held, broken)
    if selected.bit_count() < _least(claim):
        return Dropped(claim, f"held only {selected.bit_count()} times", held, broken)
    if claim.distinguishes and found.under() is None:
        return Dropped(claim, "held throughout: a setting of these runs", held, broken)
    if claim.witness is not None:
        witnessed = selected & evidence.columns[claim.head, claim.witness, None].true
        if witnessed.bit_count() < _least(claim):
            reason = f"vacuous: `{claim.witness}` was seen {witnessed.bit_count()} times"
            return Dropped(claim, reason, held, broken)
    return Draft(claim, found.under(claim.guard), selected.bit_count(), broken)


def _conditions(claim: Claim, evidence: ClaimEvidence) -> list[Condition]:
    mine, counted = _words(claim.expect), _counted(claim.expect)
    return [
        Condition(text, evidence.columns[claim.head, text, None].true)
        for text in claim.head.conditions
        if (claim.head, text, None) in evidence.columns
        if _words(text) != mine and text not in claim.expect and claim.expect not in text
        if not counted or _counted(text) != counted
    ]


def _counted(text: str) -> str:
    """The event whose calls a claim or a condition counts.

    A condition that counts calls (some calls came) is not tried for a claim that counts them.
    """
    found = re.search(r"\bcalls\(([\w.]+)\)|^contains ([\w.]+)$", text)
    return (found[1] or found[2]) if found else ""


def _words(text: str) -> str:
    """A condition without its negation: a claim is no condition for itself."""
    return text.removeprefix("not ").strip()


def _least(claim: Claim) -> int:
    """The least number of instances in which a claim must hold. A window of the run occurs once, an
    epoch seldom.
    """
    window = claim.head.window or ""
    if window == "each run" or window.endswith(" once"):
        return LEAST_RUNS
    return 3 if window == "each epoch" else LEAST_SUPPORT

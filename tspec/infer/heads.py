"""A head is all of a rule but its claim: subjects, ranks and window, and the conditions to try there.

Claims of one head have the same instances, so that they are decided together and their truth can be
set against the truth of the conditions bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tspec.syntax.editions import NEWEST

EVERY = "every 10 steps"
"""Contents are compared by digests, which read all of a tensor: often enough to catch what goes wrong
for good, seldom enough to be left on."""

SAMPLED = "(step <= 3 or divisible(step, by: 10))"
"""Condition on the step for events with many calls in a step.

A mistake there occurs in all steps, and calls that no rule reads cost little.
"""


@dataclass(frozen=True, slots=True)
class RuleHead:
    """`for ... across ... WINDOW`, as lines of the language."""

    subjects: tuple[str, ...]
    """`p in parameters`, ..."""
    across: str | None
    window: str | None
    conditions: tuple[str, ...]
    """Most general first."""

    def clauses(self) -> tuple[str, ...]:
        """The head's lines, in the fixed order of clauses."""
        lines = [f"for {subject}" for subject in self.subjects]
        if self.across:
            lines.append(f"across {self.across}")
        if self.window:
            lines.append(self.window)
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class Claim:
    """One candidate: a head, the claim under it, and the relation that proposed it."""

    relation: str
    head: RuleHead
    expect: str
    breaks: str
    """One sentence: what goes wrong in a job that breaks it."""
    guard: str | None = None
    """A condition without which the claim would not type, such as `present(p.grad)`, or would say less."""
    surprise: int = 1
    """The information of the claim: 3 for a claim that most faulty code breaks, 1 for an obvious
    one.
    """
    witness: str | None = None
    """A condition that must have been seen where the claim holds: without it the claim is vacuous."""
    distinguishes: bool = False
    """The claim is telling only where a condition separates it from its opposite; held throughout, it is a setting."""
    name: str | None = None
    """The draft's name, where the claim has too many words for one."""


def both(*conditions: str | None) -> str | None:
    """All conditions that there are."""
    return " and ".join(filter(None, conditions)) or None


def unsampled(when: str | None) -> str | None:
    """A condition without its part on sampling."""
    return both(*(part for part in (when or "").split(" and ") if part != SAMPLED))


def header(module: str, uses: Sequence[str]) -> list[str]:
    """The lines at the top of a file: the newest edition, the module, and the modules that it uses."""
    return [f"edition {NEWEST}", f"module {module}", *(f"use {use}" for use in uses)]


def invariant(name: str, head: RuleHead, expect: str, when: str | None, draft: bool = False) -> str:
    """The text of one invariant; `tspec fmt` makes it canonical."""
    lines = [f"  {line}" for line in head.clauses()]
    if when:
        lines.append(f"  when {when}")
    lines.append(f"  expect {expect}")
    word = "draft invariant" if draft else "invariant"
    return "\n".join([f"{word} {name} {{", *lines, "}"])

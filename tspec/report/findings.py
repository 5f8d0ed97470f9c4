"""The report of a check: findings, and for each rule the number of instances by verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tspec.builtin.actions import DEFAULT
from tspec.config.model import FailOn
from tspec.report.coordinates import Coordinates
from tspec.report.incomplete import Incomplete
from tspec.values import Location

Severity = Literal["error", "warning", "draft"]
"""`error`: the rule may skip an update or end the job. `draft`: the rule has not been accepted
yet.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One violated rule, with all subjects that began to violate it together.

    `rank` is the first of `ranks`, `subject` the first of `subjects` (empty for a rule without
    subjects). Of subjects that are numbered, such as batches, `subjects` has the first alone. `values` are those that the rule read at the first violated instance: expression ->
    value.
    """

    rule: str
    file: str
    line: int
    step: int
    rank: int
    subject: str
    message: str
    values: Mapping[str, str] = field(default_factory=dict)
    ranks: tuple[int, ...] = ()
    subjects: tuple[str, ...] = ()
    last_step: int = 0
    violated: int = 1
    """Instances that were violated, the first one included."""
    decided: int = 1
    """Instances that held or were violated, from the first violated one on; 0 if they were not
    counted.
    """
    severity: Severity = "warning"
    action: str = DEFAULT
    set_by: str = ""
    """The place that replaced the action of the rule's `else`: `tspec.toml:7`."""
    explanation: str = ""
    """The explanation in the rule's `///`."""
    look: str = ""
    """The next thing to look at, from the rule's `///`; empty if it names none."""
    location: Location | None = None
    """The line of the script that the first violated instance points at; None where it is not known."""
    coordinates: Coordinates = field(default_factory=dict)
    """The coordinates of the ranks, in a job that has axes."""
    consequences: tuple[Finding, ...] = ()
    """Findings of other rules about the same fault and its consequences, earliest first; they have
    none of their own.
    """
    cut_off: bool = False
    """There are more violations than `violated`, and later ones than `last_step`: a running job writes only
    the first of a rule.
    """
    looks_until: int | None = None
    """The last step that the rule looks at, by its `when`; None if it has no last one."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of instances of one rule by verdict."""

    rule: str
    holds: int = 0
    violated: int = 0
    idle: int = 0
    unknown: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    """Why instances are idle or unknown, the commonest first."""
    waits: bool = False
    """True if some are violated, and no action of the rule is due yet: `warn after 5 consecutive steps`."""

    @property
    def reason(self) -> str:
        """The commonest of these reasons; empty if there is none."""
        return self.reasons[0][0] if self.reasons else ""

    @property
    def total(self) -> int:
        """All instances."""
        return self.holds + self.violated + self.idle + self.unknown

    @property
    def tested(self) -> int:
        """Instances whose condition was not false."""
        return self.holds + self.violated + self.unknown

    @property
    def state(self) -> Literal["violated", "waiting", "held", "vacuous", "blind", "absent"]:
        """The state of all instances of the rule together.

        `waiting`: some are violated, and no action is due yet. `vacuous`: all were idle. `blind`: none
        was known, though some were not idle. `absent`: there was no instance.
        """
        if self.violated:
            return "waiting" if self.waits else "violated"
        if self.holds:
            return "held"
        if self.unknown:
            return "blind"
        return "vacuous" if self.idle else "absent"


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one check: findings by cause, and a tally for each rule in source order."""

    findings: tuple[Finding, ...]
    tallies: tuple[Tally, ...]
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """Faults of tspec's own. The parts that they concern were not checked."""
    off: tuple[tuple[str, str], ...] = ()
    """Rules that are switched off, and by whom: `tspec.toml:7`."""
    accepted: int = 0
    """Findings that a baseline holds, consequences included, which are left out here."""
    incomplete: tuple[Incomplete, ...] = ()
    """Ranks whose recordings end early: later instances were not checked."""
    undecided: Mapping[str, int] = field(default_factory=dict)
    """Rule -> the number of its instances, over all ranks, that are undecided because a recording
    ends.
    """
    complete_required: bool = False
    """True if an incomplete recording is an error, not a warning."""

    @property
    def nothing_checked(self) -> str | None:
        """The reason why nothing was checked; None if something was.

        Either the events of the rules did not occur, or they were not seen. A rule on the whole run
        has an instance in any script, which is idle if the script trains nothing.
        """
        if not self.tallies or any(tally.tested for tally in self.tallies):
            return None
        if any(tally.total for tally in self.tallies):
            return "all instances are idle"
        return "no rule had an instance"

    def fails(self, on: FailOn) -> bool:
        """True if a finding, or a consequence of one, is at least as severe as `on`."""
        if on == "never":
            return False
        severe = {"error"} if on == "error" else {"error", "warning", "draft"}
        return any(
            each.severity in severe
            for finding in self.findings
            for each in (finding, *finding.consequences)
        )

    def without_drafts(self) -> Report:
        """The report on accepted rules alone. Findings folded under a draft are drafts themselves."""
        kept = tuple(
            replace(
                finding,
                consequences=tuple(f for f in finding.consequences if f.severity != "draft"),
            )
            for finding in self.findings
            if finding.severity != "draft"
        )
        return replace(self, findings=kept)

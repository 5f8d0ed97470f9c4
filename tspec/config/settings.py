"""Settings of single rules in a project or on a command line: off, or another action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tspec.builtin.actions import ACTIONS, ActionName
from tspec.source import Source, Span

RuleAction = Literal["off"] | ActionName

RULE_ACTIONS: tuple[RuleAction, ...] = ("off", *(row.name for row in ACTIONS.values()))
"""The possible values of a setting."""


@dataclass(frozen=True, slots=True)
class RuleOverride:
    """One setting, as `std.health.loss_does_not_spike = "off"`, and its place.

    `rule` is a qualified name, or `a.b.*` for all rules of a module and its submodules.
    """

    rule: str
    action: RuleAction
    source: Source
    span: Span
    """The span of the rule's name."""
    by: str = ""
    """The origin of a setting that is no line of a file: `the command line`."""

    @property
    def where(self) -> str:
        """`tspec.toml:7`, or `the command line`."""
        return self.by or f"{self.source.path}:{self.source.position(self.span.start).line}"

    def covers(self, qualified: str) -> bool:
        """True if the override applies to a rule."""
        if self.rule.endswith(".*"):
            return qualified.startswith(self.rule[:-1])
        return qualified == self.rule

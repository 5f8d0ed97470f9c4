"""What a project or a command line says about single rules: off, or at which action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tspec.source import Source, Span

RuleAction = Literal["off", "warn", "skip", "rollback", "stop", "raise"]

ACTIONS: tuple[RuleAction, ...] = get_args(RuleAction)
"""What a setting can say."""


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """`std.health.loss_does_not_spike = "off"`, and the place where it is said.

    `rule` is a qualified name, or `a.b.*` for all rules of a module and of those below it.
    """

    rule: str
    action: RuleAction
    source: Source
    span: Span
    """Of the rule's name."""
    by: str = ""
    """Who says it, where that is no line of a file: `command line`."""

    @property
    def where(self) -> str:
        """`tspec.toml:7`, or `command line`."""
        return self.by or f"{self.source.path}:{self.source.position(self.span.start).line}"

    def covers(self, qualified: str) -> bool:
        """Whether it is about a rule."""
        if self.rule.endswith(".*"):
            return qualified.startswith(self.rule[:-1])
        return qualified == self.rule

"""The strength of a rule's actions."""

from __future__ import annotations

from typing import get_args

from tspec.resolve.program.rules import ActionName, Response, Rule

ACTIONS: tuple[str, ...] = get_args(ActionName)
"""From the weakest to the strongest."""


def strength(response: Response) -> int:
    """The place of its action among ACTIONS."""
    return ACTIONS.index(response.action)


def strongest(rule: Rule) -> int:
    """The strength of the strongest action that a rule can take."""
    return max(strength(each) for each in rule.responses)

"""The actions of `else`, the weakest first.

The type checker, `tspec why`, `tspec diff`, the reports, the configuration, the highlighter and the
hooks read this table. The grammar spells the words once more, since they are keywords.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

ActionName = Literal["warn", "skip", "rollback", "stop", "raise"]


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    `words`: its effect as `tspec why` puts it. `severity`: `tspec diff` calls a change to an action
    of greater severity stricter. `effect`: the effect on the job besides the report of a finding.
    `needs`: what must still come when the rule is decided.
    """

    name: ActionName
    words: str
    severity: int
    effect: Literal["none", "skips the update", "ends the job"]
    needs: Literal["nothing", "the update", "a step"] = "nothing"

    @property
    def acts(self) -> bool:
        """True if the action does more than report."""
        return self.effect != "none"

    @property
    def ends_job(self) -> bool:
        """True if no step follows the action."""
        return self.effect == "ends the job"


_ROWS = (
    Action("warn", "warns", 0, "none"),
    Action("skip", "skips the update", 1, "skips the update", needs="the update"),
    Action(
        "rollback",
        "stops the job (no good state is kept yet to roll back to)",
        2,
        "ends the job",
        needs="a step",
    ),
    # `raise` and `stop` both end the job, each in its own way: neither is the stricter.
    Action("stop", "stops the job", 3, "ends the job", needs="a step"),
    Action("raise", "raises an error", 3, "ends the job"),
)

ACTIONS: Mapping[str, Action] = {row.name: row for row in _ROWS}
"""Name -> action, the weakest first."""

DEFAULT: ActionName = "warn"
"""The action of a rule without `else`, and of a draft whatever its `else` names."""

ENDING = frozenset(row.name for row in _ROWS if row.ends_job)
"""The actions that no step follows."""


def strength(name: str) -> int:
    """The place of an action among all, the weakest first."""
    return [*ACTIONS].index(name)


def strongest(names: Iterable[str]) -> str:
    """The strongest of some actions; empty if there is none."""
    return max((name for name in names if name), key=strength, default="")

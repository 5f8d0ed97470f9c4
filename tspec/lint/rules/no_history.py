"""TS0422: a look-back at earlier instances of a rule that has only one."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Expr, Fold, Previous


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        if not rule.window.once and rule.window.span != "run":
            continue
        for part in checked.expressions(rule):
            if _needs_history(part):
                message = (
                    f"`{rule.source.slice(part.span)}` looks back, and `{rule.name}` is looked at "
                    "once: it is always unknown"
                )
                hint = "`first(...)` is the subject's beginning, `old(...)` the window's"
                yield about(rule, message, part.span, hint)
                break


def _needs_history(part: Expr) -> bool:
    if isinstance(part, Fold) and part.scope == "time":
        return part.name not in ("any", "all") and part.over is not None and part.over.count > 1
    return isinstance(part, Previous)


RULE = LintRule("TS0422", "no-history", check)

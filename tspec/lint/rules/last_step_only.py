"""TS0424: a rule over an epoch or a run that reads a value which every step computes anew."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program import types
from tspec.resolve.program.rules import Field
from tspec.resolve.program.types import item_of, plain

_OF_A_STEP = frozenset({"grad", "main_grad"})


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        span = rule.window.span
        if rule.window.kind != "each" or span not in ("epoch", "run"):
            continue
        for part in checked.expressions(rule):
            if isinstance(part, Field) and part.name in _OF_A_STEP and _is_tensor(part):
                shown = rule.source.slice(part.span)
                message = f"`{shown}` is read as the {span} ends: that of its last step alone"
                hint = "look at it `each step` or `before optimizer.step`, `every` so many steps"
                yield about(rule, message, part.span, hint)
                break


def _is_tensor(part: Field) -> bool:
    of = plain(part.type)
    return types.TENSOR in (of, plain(item_of(of) or of))


RULE = LintRule("TS0424", "last-step-only", check)

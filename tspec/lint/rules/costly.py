"""TS0445: a rule that makes the job read much memory, or talk often, in every step."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.cost import Cost, cost_of, of_one_look
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.plan.reads import SubjectField


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        settings, once = checked.settings, of_one_look(rule)
        if once.passes <= settings.passes and once.collectives <= settings.collectives:
            continue
        cost = cost_of(rule)
        hint = "thin it, `every 10 steps`; or read `norm` or `finite` in place of contents"
        if cost.passes > settings.passes:
            message = (
                f"`{rule.name}` reads the memory of all parameters {cost.passes:.3g} times in each "
                f"step ({_read(cost)}): {cost.bytes / 1e9:.3g} GB a step for a billion parameters "
                "in float32"
            )
            yield about(rule, message, rule.span, hint)
        elif cost.collectives > settings.collectives:
            message = (
                f"`{rule.name}` needs {cost.collectives:.3g} collectives in each step, on average"
            )
            yield about(rule, message, rule.span, hint)


def _read(cost: Cost) -> str:
    return ", ".join(dict.fromkeys(map(_column, cost.reads)))


def _column(column: SubjectField) -> str:
    features = ", ".join(each for each in column.features if not each.startswith("@"))
    moment = " before and after" if column.frame == "was" else ""
    return f"{features} of {column.name}{moment}" if features else f"{column.name}{moment}"


RULE = LintRule("TS0445", "costly", check)

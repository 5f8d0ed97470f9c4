"""TS0480: a draft in a module that others use."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    shared = {file.source.path for file in checked.files if file.key in checked.shared}
    for rule in checked.rules:
        if rule.draft and rule.source.path in shared:
            message = f"others use `{rule.name}`, which nobody has accepted"
            hint = "accept it by deleting `draft`, or write `reject NAME because ...`"
            yield about(rule, message, rule.span, hint)


RULE = LintRule("TS0480", "shared-draft", check)

"""TS0452: a name that does not state the rule's claim."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule

_PREFIX = re.compile(r"(check|test|rule|invariant|assert|verify|ensure)_(?=.)")
_COUNTED = re.compile(r".*_\d+|[a-z]+\d+")


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        if rule.draft:
            continue  # Inference named it; whoever accepts it gives it a name.
        prefix = _PREFIX.match(rule.name)
        hint = "write a short sentence: `gradients_are_cleared`"
        if prefix:
            word = prefix[1]
            message = f"`{word}` says nothing: every rule is one, and its name is what must be true"
        elif _COUNTED.fullmatch(rule.name):
            message = f"`{rule.name}` counts rules: a name says what must be true"
        elif rule.name.isalpha() and rule.name.islower():
            message = f"one word, `{rule.name}`, does not say what must be true"
        else:
            continue
        yield about(rule, message, rule.span, hint)


RULE = LintRule("TS0452", "meaningless-name", check)

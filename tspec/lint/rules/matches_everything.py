"""TS0415: a pattern that every text fits, or none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Constant, Function

_EVERYTHING = re.compile(r"\^?(\.\*)*\$?")
_NOTHING = re.compile(r".*(?<!\\)\$[^|)$].*|.*[^|(^\\\[]\^.*")


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        for part in checked.written(rule):
            if not isinstance(part, Function) or part.name not in _PATTERNS:
                continue
            pattern = part.arguments[1]
            if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
                continue
            shown = rule.source.slice(part.span)
            if pattern.value == "" or (
                part.name == "matches" and _EVERYTHING.fullmatch(pattern.value)
            ):
                yield about(rule, f"`{shown}` is true of every text", part.span, "leave it out")
            elif part.name == "matches" and _NOTHING.fullmatch(pattern.value):
                message = f"`{shown}` is true of no text: `^` and `$` are its beginning and end"
                yield about(rule, message, part.span, r"for the signs themselves, write `\^`, `\$`")


_PATTERNS = frozenset({"endswith", "startswith", "matches"})

RULE = LintRule("TS0415", "matches-everything", check)

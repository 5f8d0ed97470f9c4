"""TS0451: names that are not in lower case with underscores."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation
from tspec.lint.rule import LintRule

_SNAKE = re.compile(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*_?")


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for file, declared in checked.declarations():
        for word in declared.words:
            if _SNAKE.fullmatch(word.text):
                continue
            name = _snake(word.text)
            message = f"`{word.text}` is not written as names are: lower case, with underscores"
            yield LintViolation(message, file.source, word.span, f"write `{name}`")


def _snake(name: str) -> str:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return re.sub(r"_+", "_", apart).strip("_") or "name"


RULE = LintRule("TS0451", "naming", check)

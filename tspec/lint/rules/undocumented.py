"""TS0450: a shared rule or module without documentation."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation
from tspec.lint.rule import LintRule
from tspec.resolve.outline import Documentation


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for file in checked.files:
        if file.key not in checked.shared or file.module is None:
            continue
        if not _says_something(file.documentation):
            message = f"others use `{file.name}`, and nothing says what it is for"
            hint = "write a sentence with `///` above `module`"
            yield LintViolation(message, file.source, file.module.span, hint)
        for rule in file.of("invariant"):
            if not _says_something(rule.documentation):
                message = f"others use `{rule.name.text}`, and nothing says why it is there"
                hint = "write with `///` above it what goes wrong where it is violated"
                name = f"{file.name}.{rule.name.text}"
                yield LintViolation(message, file.source, rule.name.span, hint, invariant=name)


def _says_something(found: Documentation | None) -> bool:
    return found is not None and bool(found.text)


RULE = LintRule("TS0450", "undocumented", check)

"""TS0453: documentation that says nothing, or nothing but the name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import Edit, LintViolation, SuggestedFix
from tspec.lint.rule import LintRule
from tspec.resolve.outline import Documentation, Outline, OutlinedDeclaration
from tspec.source import Source, Span

_WORD = re.compile(r"\w+")
_SMALL = frozenset({"the", "a", "an", "is", "are", "of", "to", "in", "on"})


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for file in checked.files:
        if file.documentation is not None and not _words(file.documentation.text):
            yield _empty(file, file.documentation)
        for declared in file.declarations:
            if declared.documentation is not None:
                yield from _of(file, declared, declared.documentation)


def _of(
    file: Outline, declared: OutlinedDeclaration, said: Documentation
) -> Iterator[LintViolation]:
    words = _words(said.text)
    if not words:
        yield _empty(file, said)
    elif declared.kind == "invariant" and words <= _words(declared.name.text.replace("_", " ")):
        message = "the documentation says what the name says"
        hint = "say what goes wrong where it is violated, or leave it out"
        name = f"{file.name}.{declared.name.text}" if file.name else declared.name.text
        yield LintViolation(
            message, file.source, said.lines[0].to(said.lines[-1]), hint, invariant=name
        )


def _empty(file: Outline, said: Documentation) -> LintViolation:
    fix = SuggestedFix(
        "delete it", tuple(Edit(_line(file.source, span), "") for span in said.lines)
    )
    span = said.lines[0].to(said.lines[-1])
    return LintViolation(
        "the documentation is empty", file.source, span, "write a sentence", fix=fix
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text)) - _SMALL


def _line(source: Source, span: Span) -> Span:
    start = source.text.rfind("\n", 0, span.start) + 1
    end = source.text.find("\n", span.end)
    return Span(start, len(source.text) if end < 0 else end + 1)


RULE = LintRule("TS0453", "empty-documentation", check)

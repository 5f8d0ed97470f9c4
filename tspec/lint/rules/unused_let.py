"""TS0461: a `let` that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import Edit, LintViolation, SuggestedFix
from tspec.lint.rule import LintRule
from tspec.resolve.outline import Outline, OutlinedDeclaration
from tspec.source import Span


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for file in checked.files:
        if file.key in checked.shared or not any(file.of("invariant")):
            continue  # Vocabulary, and files that others build on, have users elsewhere.
        users = [each for each in checked.all_files if _uses(each, file)]
        read = {name for each in (file, *users) for own in each.declarations for name in own.reads}
        for let in file.of("let"):
            if let.name.text in read:
                continue
            fix = SuggestedFix(
                "delete the line", (Edit(_lines(file, let), ""),), safe=not file.name
            )
            message = f"nothing reads `{let.name.text}`"
            yield LintViolation(message, file.source, let.name.span, "delete it", fix=fix)


def _uses(other: Outline, file: Outline) -> bool:
    return bool(file.name) and any(use.module.text == file.name for use in other.uses)


def _lines(file: Outline, let: OutlinedDeclaration) -> Span:
    """The lines of a `let`, and of the documentation right above it."""
    text = file.source.text
    start = text.rfind("\n", 0, let.span.start) + 1
    for line in reversed(let.documentation.lines if let.documentation else ()):
        if text[line.end : start].strip():
            break  # Another comment stands between.
        start = text.rfind("\n", 0, line.start) + 1
    end = text.find("\n", let.span.end)
    return Span(start, len(text) if end < 0 else end + 1)


RULE = LintRule("TS0461", "unused-let", check)

"""TS0456: a variable or `let` that hides a name of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.lint.usage import visible
from tspec.resolve.outline import Outline


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for file in checked.files:
        known = _known(file, checked)
        for let in file.of("let"):
            if let.name.text in known:
                message, hint = _message(let.name.text, known[let.name.text])
                yield LintViolation(message, file.source, let.name.span, hint)
        known |= {let.name.text: "`let`" for let in file.of("let")}
        for rule in checked.rules:
            if rule.source is not file.source:
                continue
            for clause, span in zip(rule.subjects, rule.spans.variables, strict=True):
                if clause.variable in known:
                    message, hint = _message(clause.variable, known[clause.variable])
                    yield about(rule, message, span, hint)


def _message(name: str, what: str) -> tuple[str, str]:
    return f"`{name}` hides the {what} of that name", "choose another name"


def _known(file: Outline, checked: CheckedProgram) -> dict[str, str]:
    """Names that stand alone in conditions, and their meaning."""
    seen = checked.program.vocabulary
    modules = visible(file, checked.by_module)
    found = {each.name: "context" for each in seen.context if each.module in modules}
    found |= {each.plural: "collection" for each in seen.entities if each.module in modules}
    found |= {each.name: "event" for each in seen.events if each.module in modules}
    return found


RULE = LintRule("TS0456", "shadowed-name", check)

"""TS0460: a `use` without any name in use."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import Edit, LintViolation, SuggestedFix
from tspec.lint.rule import LintRule
from tspec.lint.usage import visible
from tspec.resolve.outline import Outline, UseLine
from tspec.source import Span


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for file in checked.files:
        if file.is_pack:
            continue  # A pack uses modules for their rules.
        read = {name for declared in file.declarations for name in declared.reads}
        for place, use in enumerate(file.uses):
            if use in file.uses[:place]:
                message = f"`{use.module.text}` is used twice"
            elif not _is_read(use, read, file, checked):
                message = f"nothing of `{use.module.text}` is used"
            else:
                continue
            fix = SuggestedFix("delete the line", (Edit(_line(file, use), ""),))
            yield LintViolation(message, file.source, use.module.span, "delete the line", fix=fix)


def _is_read(use: UseLine, read: set[str], file: Outline, checked: CheckedProgram) -> bool:
    target = checked.by_module.get(use.module.text)
    if target is None or use.settings:
        return True
    if use.alias is not None:
        return use.alias.text in read
    others = [
        checked.by_module[other.module.text]
        for other in file.uses
        if other is not use and other.alias is None and other.module.text in checked.by_module
    ]
    elsewhere = {name for other in others for name in visible(other, checked.by_module)}
    brought = visible(target, checked.by_module) - elsewhere | {target.name}
    modules = [checked.by_module[name] for name in brought if name in checked.by_module]
    return any(_extends_another(module) for module in modules) or any(
        read & each.declares for module in modules for each in module.declarations
    )


def _extends_another(module: Outline) -> bool:
    """True if the module extends what another module declares."""
    own = {each.name.text for each in module.declarations if not each.extends}
    return any(each.extends and each.name.text not in own for each in module.declarations)


def _line(file: Outline, use: UseLine) -> Span:
    """The line of a `use`, which takes a comment at its end along; one above it stays."""
    text = file.source.text
    start = text.rfind("\n", 0, use.span.start) + 1
    end = text.find("\n", use.span.end)
    return Span(start, len(text) if end < 0 else end + 1)


RULE = LintRule("TS0460", "unused-use", check)

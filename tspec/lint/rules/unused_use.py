"""TS0460: a `use` of which nothing is used."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Edit, Fix, Found
from tspec.lint.rule import LintRule
from tspec.lint.usage import declared_names, extends, read_names, visible
from tspec.resolve.modules.files import Unit, is_pack
from tspec.source import Span
from tspec.syntax import nodes


def check(checked: Checked) -> Iterator[Found]:
    for unit in checked.files:
        if is_pack(unit.file):
            continue  # It uses modules for their rules.
        read = {name for node in unit.file.declarations for name in read_names(node)}
        for place, use in enumerate(unit.file.uses):
            if use in unit.file.uses[:place]:
                message = f"`{use.module.text}` is used twice"
            elif not _is_read(use, read, unit, checked):
                message = f"nothing of `{use.module.text}` is used"
            else:
                continue
            fix = Fix("delete the line", (Edit(_line(unit, use), ""),))
            yield Found(message, unit.source, use.module.span, "delete the line", fix=fix)


def _is_read(use: nodes.Use, read: set[str], unit: Unit, checked: Checked) -> bool:
    target = checked.by_module.get(use.module.text)
    if target is None or use.settings:
        return True
    if use.alias is not None:
        return use.alias.text in read
    others = [
        checked.by_module[other.module.text]
        for other in unit.file.uses
        if other is not use and other.alias is None and other.module.text in checked.by_module
    ]
    elsewhere = {name for other in others for name in visible(other, checked.by_module)}
    brought = visible(target, checked.by_module) - elsewhere | {target.name}
    modules = [checked.by_module[name] for name in brought if name in checked.by_module]
    return any(extends(each) or read & set(declared_names(each)) for each in modules)


def _line(unit: Unit, use: nodes.Use) -> Span:
    """The line of a `use`, which takes a comment at its end along; one above it stays."""
    text = unit.source.text
    start = text.rfind("\n", 0, use.span.start) + 1
    end = text.find("\n", use.span.end)
    return Span(start, len(text) if end < 0 else end + 1)


RULE = LintRule("TS0460", "unused-use", check)

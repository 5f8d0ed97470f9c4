"""TS0450: a shared rule, or module, of which nobody says why it is there."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Found
from tspec.lint.rule import LintRule
from tspec.syntax import nodes


def check(checked: Checked) -> Iterator[Found]:
    for unit in checked.files:
        if unit.key not in checked.shared or unit.file.module is None:
            continue
        if not unit.file.module.doc:
            message = f"others use `{unit.name}`, and nothing says what it is for"
            hint = "write a sentence with `///` above `module`"
            yield Found(message, unit.source, unit.file.module.name.span, hint)
        for node in unit.file.declarations:
            if isinstance(node, nodes.Invariant) and not node.doc:
                message = f"others use `{node.name.text}`, and nothing says why it is there"
                hint = "write with `///` above it what goes wrong where it is violated"
                name = f"{unit.name}.{node.name.text}"
                yield Found(message, unit.source, node.name.span, hint, invariant=name)


RULE = LintRule("TS0450", "undocumented", check)

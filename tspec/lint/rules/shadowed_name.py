"""TS0456: a variable or `let` that hides a name of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Found, about
from tspec.lint.rule import LintRule
from tspec.lint.usage import visible
from tspec.resolve.modules.files import Unit
from tspec.syntax import nodes


def check(checked: Checked) -> Iterator[Found]:
    rules = {(rule.source.path, rule.name): rule for rule in checked.rules}
    for unit in checked.files:
        known = _known(unit, checked)
        for node in unit.file.declarations:
            if isinstance(node, nodes.Let) and node.name.text in known:
                message, hint = _said(node.name.text, known[node.name.text])
                yield Found(message, unit.source, node.name.span, hint)
            if not isinstance(node, nodes.Invariant):
                continue
            rule = rules.get((unit.source.path, node.name.text))
            for clause in node.subjects:
                name = clause.variable.text
                if rule is not None and name in known | _lets(unit):
                    message, hint = _said(name, (known | _lets(unit))[name])
                    yield about(rule, message, clause.variable.span, hint)


def _said(name: str, what: str) -> tuple[str, str]:
    return f"`{name}` hides the {what} of that name", "choose another name"


def _known(unit: Unit, checked: Checked) -> dict[str, str]:
    """Names that stand alone in conditions, and what they are."""
    seen = checked.program.vocabulary
    modules = visible(unit, checked.by_module)
    found = {each.name: "context" for each in seen.context if each.module in modules}
    found |= {each.plural: "collection" for each in seen.entities if each.module in modules}
    found |= {each.name: "event" for each in seen.events if each.module in modules}
    return found


def _lets(unit: Unit) -> dict[str, str]:
    return {
        node.name.text: "`let`" for node in unit.file.declarations if isinstance(node, nodes.Let)
    }


RULE = LintRule("TS0456", "shadowed-name", check)

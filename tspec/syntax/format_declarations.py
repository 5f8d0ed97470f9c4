"""The layout of each declaration."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.syntax import nodes
from tspec.syntax.format_expressions import (
    comments_above,
    expression,
    quantity,
    trailing,
    type_text,
)
from tspec.syntax.format_lines import block, expressions, listed, value
from tspec.syntax.format_sharding import layout, mesh
from tspec.syntax.format_trials import equivalence, replay, test
from tspec.syntax.printer import LINE, Doc, group, indent
from tspec.syntax.strings import quote


def declaration(node: nodes.Node) -> Doc:
    """An item of a file, without the comments around it."""
    match node:
        case nodes.Edition():
            return f"edition {node.year}"
        case nodes.Module():
            return f"module {node.name.text}{_version(node.version)}"
        case nodes.Use():
            return _use(node)
        case nodes.Let():
            return value(f"let {node.name.text} =", node.value)
        case nodes.Reject():
            return f"reject {node.name.text} because {quote(node.because.value)}"
        case nodes.ContextDeclaration():
            return block("context", node, node.fields, _context_field)
        case nodes.Group():
            head = f"{_extend(node.extend)}group {node.name.text}"
            return (head, " = ", _callables(node.callables)) if node.callables else head
        case nodes.Entity():
            head = f"{_extend(node.extend)}entity {node.name.text}"
            return block(head, node, node.fields, _field)
        case nodes.Event():
            return _event(node)
        case nodes.Invariant():
            return _invariant(node)
        case nodes.Mesh():
            return mesh(node)
        case nodes.Dims():
            return block(f"dims {node.name.text}", node, node.entries, entry)
        case nodes.Layout():
            return layout(node)
        case nodes.Equivalence():
            return equivalence(node)
        case nodes.Replay():
            return replay(node)
        case nodes.Test():
            return test(node)
        case _:
            raise TypeError(f"no way is known to write {type(node).__name__}")


def _version(version: nodes.String | None) -> str:
    return f" version {quote(version.value)}" if version else ""


def _use(node: nodes.Use) -> Doc:
    alias = f" as {node.alias.text}" if node.alias else ""
    head = f"use {node.module.text}{_version(node.version)}{alias}"
    if not node.settings:
        return head
    body: list[Doc] = []
    for index, setting in enumerate(node.settings):
        body += [",", LINE] if index else [LINE]
        text = f"{setting.rule.text}: {setting.action.text}"
        body += [*comments_above(setting), text, *trailing(setting)]
    return group(f"{head} with", indent(*body))


def _extend(extend: bool) -> str:
    return "extend " if extend else ""


def _callables(callables: Sequence[nodes.Dotted]) -> Doc:
    """Further to the right than a block that may follow."""
    return ("call ", listed(callables, lambda each: each.text, by=4))


def _context_field(node: nodes.ContextField) -> Doc:
    return f"{node.name.text}: {type_text(node.type)}"


def _field(node: nodes.Field) -> Doc:
    head = f"{node.name.text}: {type_text(node.type)}"
    return head if node.value is None else (head, " = ", expression(node.value))


def _event(node: nodes.Event) -> Doc:
    head = (f"{_extend(node.extend)}event {node.name.text} = ", _callables(node.callables))
    if not node.fields and not node.trivia.opening and not node.trivia.inner:
        return head
    return block(head, node, node.fields, _field)


def entry(node: nodes.Entry) -> Doc:
    """`key: value, value`."""
    return (f"{node.key.text}: ", expressions(node.values))


# Rules


def _invariant(node: nodes.Invariant) -> Doc:
    clauses: list[nodes.Clause] = [*node.subjects]
    rest = (node.across, node.window, node.when, node.expect, node.otherwise, node.inferred)
    clauses += [clause for clause in rest if clause is not None]
    head = f"{'draft ' if node.draft else ''}invariant {node.name.text}"
    return block(head, node, clauses, _clause, empty_lines=False)


def _clause(node: nodes.Clause) -> Doc:
    match node:
        case nodes.For():
            return (f"for {node.variable.text} in ", expression(node.collection))
        case nodes.Across():
            return ("across ", expressions(node.groups))
        case nodes.Instant():
            return (f"{node.edge} ", expression(node.event), _thinning(node.thinning))
        case nodes.During():
            return ("during ", expression(node.event), _thinning(node.thinning))
        case nodes.Each():
            return (f"each {node.unit.text}", _thinning(node.thinning))
        case nodes.When():
            return value("when", node.condition)
        case nodes.Expect():
            return value("expect", node.claim, _claim(node.claim))
        case nodes.Else():
            return ("else ", listed(node.responses, _response, before="then "))
        case nodes.Inferred():
            return block("inferred", node, node.entries, entry, empty_lines=False)
        case _:
            raise TypeError(f"no way is known to write {type(node).__name__}")


def _thinning(node: nodes.Thinning | None) -> str:
    if node is None:
        return ""
    return f" every {quantity(node.period)}" if isinstance(node, nodes.Every) else " once"


def _claim(node: nodes.Claim) -> Doc:
    match node:
        case nodes.Ordered():
            first, *rest = node.events
            links = [
                (
                    LINE,
                    *comments_above(event),
                    "before ",
                    expression(event, comments=False),
                    *trailing(event),
                )
                for event in rest
            ]
            return (group(expression(first), indent(*links)), *trailing(node))
        case nodes.Contains():
            return ("contains ", expression(node.event), *trailing(node))
        case nodes.OnlyDuring():
            during, *others = map(expression, node.events)
            alternatives = indent(*((LINE, "or ", event) for event in others))
            subject = expression(node.subject)
            return (group(subject, " only during ", during, alternatives), *trailing(node))
        case _:
            return (expression(node, comments=False), *trailing(node))


def _response(node: nodes.Response) -> str:
    match node.often:
        case None:
            return node.action.text
        case nodes.Consecutive():
            return f"{node.action.text} after {node.often.count} consecutive steps"
        case nodes.Frequent():
            often = node.often
            return f"{node.action.text} after {often.count} of {quantity(often.period)}"

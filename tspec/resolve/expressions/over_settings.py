"""Conditions over settings: all names are settings. The type checker of rules types them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.lower import lower
from tspec.resolve.expressions.operators import condition
from tspec.resolve.findings import Findings
from tspec.resolve.names.reporter import Reporter
from tspec.resolve.names.scope import Scope
from tspec.resolve.names.type_names import words_of
from tspec.resolve.program import rules
from tspec.resolve.program.declarations import AmbientDeclaration
from tspec.resolve.program.types import Type
from tspec.syntax import nodes

_OPERATORS = (
    nodes.Not, nodes.And, nodes.Or, nodes.Implies, nodes.Comparison, nodes.Arithmetic,
    nodes.Negative, nodes.List, nodes.Set,
)  # fmt: skip
_LITERALS = (nodes.Integer, nodes.Float, nodes.Percentage, nodes.Boolean, nodes.String)


def setting_names(node: nodes.Expr) -> Iterator[nodes.Name | nodes.Attribute]:
    """The names in a condition, dotted ones as wholes."""
    if isinstance(node, nodes.Name | nodes.Attribute):
        yield node
        return
    for child in node.children():
        if isinstance(child, nodes.Expr):
            yield from setting_names(child)


def is_word(node: nodes.Expr, settings: Mapping[str, Type]) -> bool:
    """True if a name is a value of some setting, such as `float32` or `eval`."""
    return isinstance(node, nodes.Name) and any(
        node.text in words_of(each) for each in settings.values()
    )


def strays(node: nodes.Expr) -> Iterator[nodes.Expr]:
    """Parts that a condition over settings cannot have, such as calls."""
    if isinstance(node, _OPERATORS):
        for child in node.children():
            if isinstance(child, nodes.Expr):
                yield from strays(child)
        return
    named = isinstance(node, nodes.Name | nodes.Attribute) and nodes.dotted_text(node) is not None
    if not (named or isinstance(node, _LITERALS)):
        yield node


def typed_condition(
    node: nodes.Expr, settings: Mapping[str, Type], reporter: Reporter
) -> rules.Expr | None:
    """Type a condition over these settings. None if it has an error, which is reported."""
    try:
        return condition(node, _place(settings, reporter.scope, reporter.findings))
    except Refused:
        reporter.failed = True
        return None


def constant(
    node: nodes.Expr, settings: Mapping[str, Type], scope: Scope, want: Type | None
) -> rules.Constant | None:
    """The constant of a type that an expression is, or None. Nothing is reported."""
    try:
        found = _place(settings, scope, Findings()).lower(node, want)
    except Refused:
        return None
    return found if isinstance(found, rules.Constant) else None


def _place(settings: Mapping[str, Type], scope: Scope, findings: Findings) -> Environment:
    names = {name: AmbientDeclaration(name, of) for name, of in settings.items()}
    lets = {name: let for name, let in scope.lets.items() if name not in names}
    inside = replace(
        scope, ambient=names, lets=lets, entities={}, collections={}, events={}, axes={}
    )
    return Environment(inside, findings, lower, "when", {}, rules.Window("each", span="run"))

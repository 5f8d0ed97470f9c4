"""From Lark's tree to the typed one: each rule of the grammar makes the node of its name.

A node whose fields are the rule's children in order has no function of its own. The others have one,
which gets the span and the children; `[x]` in the grammar is None where it is absent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from lark import Token, Tree
from lark.ast_utils import camel_to_snake

from tspec.diagnostics import Diagnostic
from tspec.source import Source, Span
from tspec.syntax import nodes
from tspec.syntax.clauses import check
from tspec.syntax.strings import unquote
from tspec.syntax.units import SINGULARS

DEEPEST = 100
"""The deepest tree that is read. Trees are walked by recursion."""

LONGEST_INTEGER = 18
"""Digits that surely fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class TooDeep(Exception):
    """A tree has more than `DEEPEST` levels; `span` is the place of the first that is too deep."""

    span: Span


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds the nodes of one file, and notes errors in single words."""

    source: Source
    found: list[Diagnostic] = field(default_factory=list)

    def item(self, tree: Tree[Token]) -> nodes.Node:
        """The node of a whole item. Raises TooDeep."""
        node = self._build(tree, 0)
        assert isinstance(node, nodes.Node)
        return node

    def _build(self, tree: Tree[Token], depth: int) -> Any:
        span = Span(tree.meta.start_pos, tree.meta.end_pos) if not tree.meta.empty else Span(0, 0)
        if depth > DEEPEST:
            raise TooDeep(span)
        children = [
            self._build(child, depth + 1) if isinstance(child, Tree) else child
            for child in tree.children
        ]
        return RULES[tree.data](self, span, children)

    def check(self, block: str, name: nodes.Node, clauses: Sequence[nodes.Node]) -> None:
        self.found.extend(check(block, name, clauses, self.source))

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.found.append(Diagnostic(code, message, span, self.source, hint=hint))


Children = Sequence[Any]
Rule = Callable[[Builder, Span, Children], Any]


def _number(self: Builder, token: Token) -> int:
    """An integer's value; one that is too long is an error, and reads as 0."""
    if len(token) > LONGEST_INTEGER:
        assert token.start_pos is not None
        self.error(
            "TS0019",
            f"this number has {len(token)} digits, and {LONGEST_INTEGER} can be kept exactly",
            Span(token.start_pos, token.start_pos + len(token)),
            "write it with an exponent, such as `1e20`, if it need not be exact",
        )
        return 0
    return int(token)


def _present(children: Children) -> tuple[Any, ...]:
    return tuple(child for child in children if child is not None)


def _of(node: Callable[..., Any]) -> Rule:
    """Children that are the node's fields in order."""
    return lambda self, span, c: node(*c, span=span)


def _all(node: Callable[..., Any]) -> Rule:
    """Children that are the node's only field, a tuple."""
    return lambda self, span, c: node(_present(c), span=span)


def _named(node: Callable[..., Any]) -> Rule:
    """A name, then all others."""
    return lambda self, span, c: node(c[0], _present(c[1:]), span=span)


def _rule_of(node: type[nodes.Node]) -> str:
    """The rule of the grammar that has a node's name: `only_during` of `OnlyDuring`."""
    name: str = camel_to_snake(node.__name__)  # type: ignore[no-untyped-call]
    return name


def _block(node: Callable[..., Any]) -> Rule:
    """A name, then clauses, whose order and number are checked."""
    block = _rule_of(cast("type[nodes.Node]", node))

    def rule(self: Builder, span: Span, c: Children) -> Any:
        clauses = _present(c[1:])
        self.check(block, c[0], clauses)
        return node(c[0], clauses, span=span)

    return rule


def _tuple(self: Builder, span: Span, c: Children) -> tuple[Any, ...]:
    return _present(c)


def _word(self: Builder, span: Span, c: Children) -> nodes.Word:
    return nodes.Word(str(c[0]), span=span)


def _callable(self: Builder, span: Span, c: Children) -> nodes.Dotted:
    *words, star = c
    if star is None:
        return nodes.Dotted(tuple(words), span=span)
    last = nodes.Word("*", span=Span(star.start_pos, star.start_pos + 1))
    return nodes.Dotted((*words, last), span=span)


def _invariant(self: Builder, span: Span, c: Children) -> nodes.Invariant:
    draft, name, *premises, expect, otherwise, inferred = c
    self.check("invariant", name, _present(c[2:]))
    return nodes.Invariant(
        name,
        tuple(p for p in premises if isinstance(p, nodes.For)),
        next((p for p in premises if isinstance(p, nodes.Across)), None),
        next((p for p in premises if isinstance(p, nodes.Window)), None),
        next((p for p in premises if isinstance(p, nodes.When)), None),
        expect,
        otherwise,
        inferred,
        draft is not None,
        span=span,
    )


def _split(self: Builder, span: Span, c: Children) -> nodes.Split:
    return nodes.Split(c[0], span=span) if c[1] is None else nodes.Split(c[1], c[0], span=span)


def _step_script(self: Builder, span: Span, c: Children) -> nodes.StepScript:
    first = _number(self, c[0])
    last = first if c[1] is None else _number(self, c[1])
    return nodes.StepScript(first, last, _present(c[2:]), span=span)


def _events(self: Builder, span: Span, c: Children) -> nodes.Events:
    stage, *steps = c
    ranks = stage if isinstance(stage, int) else None
    mesh = stage if isinstance(stage, nodes.Word) else None
    return nodes.Events(tuple(steps), ranks, mesh, span=span)


def _at(self: Builder, span: Span, c: Children) -> nodes.At:
    first = _number(self, c[0])
    return nodes.At(first, first if c[1] is None else _number(self, c[1]), span=span)


def _stage(self: Builder, span: Span, c: Children) -> nodes.Stage:
    chunk = None if c[1] is None else _number(self, c[1])
    return nodes.Stage(_number(self, c[0]), tuple(c[2:]), chunk, span=span)


def _arithmetic(self: Builder, span: Span, c: Children) -> nodes.Arithmetic:
    return nodes.Arithmetic(c[0], str(c[1]), c[2], span=span)  # type: ignore[arg-type]


def _flattened(node: type[nodes.And] | type[nodes.Or]) -> Rule:
    """`(a and b) and c` is `a and b and c`."""

    def rule(self: Builder, span: Span, c: Children) -> nodes.Expr:
        parts = [child.operands if isinstance(child, node) else (child,) for child in c]
        return node(tuple(operand for part in parts for operand in part), span=span)

    return rule


def _comparison(self: Builder, span: Span, c: Children) -> nodes.Comparison:
    operands, operators = tuple(c[0::2]), tuple(c[1::2])
    if len(operators) > 1 and not (set(operators) <= {"<", "<="} or set(operators) <= {">", ">="}):
        self.error(
            "TS0017",
            f"`{'` and `'.join(operators[:2])}` do not form a chain: only `<` and `<=`, or `>`"
            " and `>=`, do",
            span,
            "join two comparisons with `and`",
        )
    return nodes.Comparison(operands, operators, span=span)


def _float(self: Builder, span: Span, c: Children) -> nodes.Float:
    value = float(c[0])
    if not math.isfinite(value):
        self.error("TS0019", "this number is larger than any float", span, "`inf` is infinity")
        return nodes.Float(0.0, span=span)
    return nodes.Float(value, str(c[0]), span=span)


def _quantity(self: Builder, span: Span, c: Children) -> nodes.Quantity:
    number, unit = c[0].split()
    unit = SINGULARS[unit]
    if "." in number:
        return nodes.Quantity(float(number), unit, span=span)
    start = c[0].start_pos
    return nodes.Quantity(_number(self, Token("INT", number, start)), unit, span=span)


def _string(self: Builder, span: Span, c: Children) -> nodes.String:
    value, wrong = unquote(str(c[0]))
    if wrong is not None:
        place = Span(span.start + wrong, span.start + wrong + 2)
        self.error(
            "TS0016",
            f"`{self.source.slice(place)}` stands for nothing in a text",
            place,
            r"the escapes are `\"`, `\\`, `\n`, `\t`, `\r` and `\u{1F600}`",
        )
    return nodes.String(value, span=span)


def _by_name(make: Callable[[Any], Rule], *kinds: type[nodes.Node]) -> dict[str, Rule]:
    return {_rule_of(kind): make(kind) for kind in kinds}


BY_NAME: dict[str, Rule] = {
    **_by_name(
        _of, nodes.Module, nodes.RuleSetting, nodes.Let, nodes.Reject, nodes.ContextField, nodes.Field,
        nodes.For, nodes.During, nodes.Each, nodes.Every, nodes.Once, nodes.When, nodes.Expect,
        nodes.Contains, nodes.Response, nodes.Tied, nodes.UsesLayout, nodes.Setting, nodes.Sweep,
        nodes.Require, nodes.EqualWhen, nodes.Cover, nodes.Run, nodes.GeneratedInput, nodes.Within,
        nodes.Store, nodes.Localize,
        nodes.Change, nodes.Violates, nodes.Passes, nodes.Implies, nodes.Not,
        nodes.Negative, nodes.Attribute, nodes.Index, nodes.Argument,
    ),
    **_by_name(
        _all, nodes.ContextDeclaration, nodes.Choice, nodes.Across, nodes.Ordered, nodes.Else, nodes.Inferred,
        nodes.Shape, nodes.SizeSum, nodes.Product, nodes.Reference, nodes.Candidate, nodes.Compare,
        nodes.Fix, nodes.Save, nodes.ExpectAll, nodes.List, nodes.Set, nodes.Dotted,
    ),
    **_by_name(_named, nodes.OnlyDuring, nodes.Entry, nodes.Regroup, nodes.Dims),
    **_by_name(_block, nodes.Equivalence, nodes.Replay, nodes.Test),
    **_by_name(_flattened, nodes.And, nodes.Or),
}  # fmt: skip
"""Rules whose children are the fields of the node of their name."""

RULES: dict[str, Rule] = {
    **BY_NAME,
    "trace": _of(nodes.UsesTrace),
    # items
    "edition": lambda self, span, c: nodes.Edition(_number(self, c[0]), span=span),
    "use": lambda self, span, c: nodes.Use(c[0], c[1], c[2], _present(c[3:]), span=span),
    # vocabulary
    "group": lambda self, span, c: nodes.Group(c[1], c[2] or (), c[0] is not None, span=span),
    "entity": lambda self, span, c: nodes.Entity(c[1], tuple(c[2:]), c[0] is not None, span=span),
    "event": lambda self, span, c: nodes.Event(c[1], c[2], c[3] or (), c[0] is not None, span=span),
    "callables": _tuple,
    "callable": _callable,
    "fields": _tuple,
    "named_type": lambda self, span, c: nodes.NamedType(
        c[0], c[1] or (), c[2] is not None, span=span
    ),
    "type_arguments": _tuple,
    # rules
    "invariant": _invariant,
    "instant": lambda self, span, c: nodes.Instant(str(c[0]), c[1], c[2], span=span),  # type: ignore[arg-type]
    "consecutive": lambda self, span, c: nodes.Consecutive(_number(self, c[0]), span=span),
    "frequent": lambda self, span, c: nodes.Frequent(_number(self, c[0]), c[1], span=span),
    # sharding
    "mesh": lambda self, span, c: nodes.Mesh(
        c[0],
        tuple(e for e in c[1:] if isinstance(e, nodes.Entry)),
        tuple(e for e in c[1:] if isinstance(e, nodes.Regroup)),
        span=span,
    ),
    "layout": lambda self, span, c: nodes.Layout(c[0], c[1], tuple(c[3:]), c[2] or (), span=span),
    "place": lambda self, span, c: nodes.Place(
        c[0], c[1], c[2], c[3] or (), c[4] or (), c[5], span=span
    ),
    "partial": _tuple,
    "replicated": _tuple,
    "flat": lambda self, span, c: nodes.Flat(tuple(c[1:]), c[0] or (), span=span),
    "dimension": lambda self, span, c: nodes.Dimension(c[0], c[1] or (), tuple(c[2:]), span=span),
    "size_name": lambda self, span, c: nodes.SizeName(c[0].text, span=span),
    "size_number": lambda self, span, c: nodes.SizeNumber(_number(self, c[0]), span=span),
    "padding": _tuple,
    "split": _split,
    "stage": _stage,
    # trials
    "resume": lambda self, span, c: nodes.Resume(_number(self, c[0]), span=span),
    "events": _events,
    "on_ranks": lambda self, span, c: _number(self, c[0]),
    "on_mesh": lambda self, span, c: c[0],
    "step_script": _step_script,
    "happening": lambda self, span, c: nodes.Happening(c[0], c[1] or (), span=span),
    "inside": _tuple,
    "rank_script": lambda self, span, c: nodes.RankScript(c[0], _present(c[1:]), span=span),
    "rank_list": lambda self, span, c: tuple(_number(self, token) for token in c),
    "at": _at,
    "on_rank": lambda self, span, c: _number(self, c[0]),
    "subject": lambda self, span, c: c[0],
    "all_others": lambda self, span, c: None,
    # expressions
    "comparison": _comparison,
    "comparator": lambda self, span, c: " ".join(c),
    "arithmetic": _arithmetic,
    "call": lambda self, span, c: nodes.Call(c[0], c[1] or (), span=span),
    "arguments": _tuple,
    "name": lambda self, span, c: nodes.Name(c[0].text, span=span),
    "integer": lambda self, span, c: nodes.Integer(_number(self, c[0]), span=span),
    "float": _float,
    "percentage": lambda self, span, c: nodes.Percentage(str(c[0])[:-1], span=span),
    "quantity": _quantity,
    "string": _string,
    "boolean": lambda self, span, c: nodes.Boolean(c[0] == "true", span=span),
    # words
    "word": _word,
    "kind": _word,
    "unit": _word,
    "action": _word,
    "rule_action": _word,
    "coverage": _word,
}

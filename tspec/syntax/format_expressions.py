"""Formatting of expressions and types: spacing, parentheses, line breaks.

Parentheses stand where they are needed, around `and` in `or`, and around the operand of `not`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tspec.syntax import nodes
from tspec.syntax.printer import (
    HARD,
    LINE,
    SOFT,
    Doc,
    IfBroken,
    Suffix,
    group,
    indent,
    join,
)
from tspec.syntax.strings import quote
from tspec.syntax.units import PLURALS

# The precedence of expressions, from the loosest.
_IMPLIES, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _POSTFIX = range(1, 10)


def expression(node: nodes.Expr, tightness: int = _IMPLIES, comments: bool = True) -> Doc:
    """An expression, in parentheses if it binds less tightly than its place requires.

    Its comments go to the end of the line, also those above it, for which the place has no room;
    without `comments` the caller sets them.
    """
    own, doc = _written(node)
    if own < tightness:
        doc = ("(", doc, ")")
    if not comments or node.trivia == nodes.NO_TRIVIA:
        return doc
    return (*(Suffix(comment.text) for comment in node.trivia.leading), doc, *trailing(node))


def trailing(node: nodes.Node) -> tuple[Doc, ...]:
    """The comments at the end of a node's line."""
    return tuple(Suffix(comment.text) for comment in node.trivia.trailing)


def comments_above(node: nodes.Node) -> tuple[Doc, ...]:
    """The comments above a node, each on a line of its own."""
    return tuple(part for comment in node.trivia.leading for part in (comment.text, HARD))


def bracketed(opening: str, node: nodes.Node, items: Sequence[Doc], closing: str) -> Doc:
    """Items in brackets: on one line, or one a line with a comma after each."""
    trivia = node.trivia
    if not items and not trivia.opening and not trivia.inner:
        return opening + closing
    comma: Doc = (",", LINE)
    body: list[Doc] = [SOFT, join(comma, items)] if items else []
    body += [IfBroken(",")] if items else []
    body += [part for comment in trivia.inner for part in (HARD, comment.text)]
    after = tuple(Suffix(comment.text) for comment in trivia.opening)
    return group(opening, *after, indent(*body), SOFT, closing)


def item(node: nodes.Expr) -> Doc:
    """An element of a list, with the comments above it."""
    return (*comments_above(node), expression(node, comments=False), *trailing(node))


def argument(node: nodes.Argument) -> Doc:
    """`value` or `name: value`."""
    name = "" if node.name is None else f"{node.name.text}: "
    return (*comments_above(node), name, expression(node.value), *trailing(node))


def chain(first: Doc, rest: Sequence[tuple[str, nodes.Expr, int]]) -> Doc:
    """Operands with operators between, or one a line, each with its operator before it."""
    links = [
        (
            *(LINE, *comments_above(operand), operator, " "),
            *(expression(operand, tightness, comments=False), *trailing(operand)),
        )
        for operator, operand, tightness in rest
    ]
    return group(first, indent(*links))


def _written(node: nodes.Expr) -> tuple[int, Doc]:
    """The precedence of an expression, and its text without parentheses around it."""
    match node:
        case nodes.Name():
            return _POSTFIX, node.text
        case nodes.Attribute():
            return _POSTFIX, (expression(node.value, _POSTFIX), ".", node.name.text)
        case nodes.Call():
            called = expression(node.function, _POSTFIX)
            return _POSTFIX, (called, bracketed("(", node, [*map(argument, node.arguments)], ")"))
        case nodes.Index():
            return _POSTFIX, (expression(node.value, _POSTFIX), "[", expression(node.index), "]")
        case nodes.List():
            return _POSTFIX, bracketed("[", node, [item(each) for each in node.items], "]")
        case nodes.Set():
            return _POSTFIX, bracketed("{", node, [item(each) for each in node.items], "}")
        case nodes.Negative():
            return _UNARY, ("-", expression(node.value, _UNARY))
        case nodes.Arithmetic():
            return _arithmetic(node)
        case nodes.Comparison():
            first = expression(node.operands[0], _SUM)
            links = zip(node.operators, node.operands[1:], strict=True)
            return _COMPARISON, chain(first, [(sign, operand, _SUM) for sign, operand in links])
        case nodes.Not():
            return _NOT, ("not ", expression(node.value, _SUM))  # not (a == b)
        case nodes.And():
            return _AND, _joined(node.operands, "and", _NOT)
        case nodes.Or():
            return _OR, _joined(node.operands, "or", _NOT)  # (a and b) or c
        case nodes.Implies():
            left = expression(node.left, _OR)
            return _IMPLIES, chain(left, [("implies", node.right, _IMPLIES)])
        case _:
            return _POSTFIX, literal(node)


def _joined(operands: Sequence[nodes.Expr], word: str, tightness: int) -> Doc:
    first = expression(operands[0], tightness)
    return chain(first, [(word, operand, tightness) for operand in operands[1:]])


def _arithmetic(node: nodes.Arithmetic) -> tuple[int, Doc]:
    """Terms of one tightness are one chain: `a - b + c` breaks before each sign or none."""
    own = _SUM if node.operator in "+-" else _PRODUCT
    rest: list[tuple[str, nodes.Expr, int]] = []
    left: nodes.Expr = node
    while isinstance(left, nodes.Arithmetic) and (left.operator in "+-") == (own == _SUM):
        if left is not node and left.trivia != nodes.NO_TRIVIA:
            break
        rest.append((left.operator, left.right, own + 1))
        left = left.left
    return own, chain(expression(left, own), rest[::-1])


def literal(node: nodes.Expr) -> str:
    """A number, a text or a truth value."""
    match node:
        case nodes.Integer():
            return str(node.value)
        case nodes.Float():
            return float_text(node)
        case nodes.Percentage():
            return f"{node.text}%"
        case nodes.Quantity():
            return quantity(node)
        case nodes.String():
            return quote(node.value)
        case nodes.Boolean():
            return "true" if node.value else "false"
        case _:
            raise TypeError(f"no way is known to write {type(node).__name__}")


def float_text(node: nodes.Float) -> str:
    """A number as it was written, without redundant signs and zeros in its exponent: `1e-4`,
    `2.5e6`.
    """
    text = node.text if node.text and float(node.text) == node.value else repr(node.value)
    mantissa, mark, exponent = text.lower().partition("e")
    if not mark:
        return text
    sign = "-" if exponent.startswith("-") else ""
    return f"{mantissa}e{sign}{exponent.lstrip('+-').lstrip('0') or '0'}"


def quantity(node: nodes.Quantity) -> str:
    """`1 step`, `2 steps`."""
    if node.amount == 1 and isinstance(node.amount, int):
        return f"1 {node.unit}"
    return f"{node.amount} {PLURALS[node.unit]}"


def type_text(node: nodes.Type) -> str:
    """`list<tensor>?`, `train | eval`."""
    if isinstance(node, nodes.Choice):
        return " | ".join(word.text for word in node.names)
    assert isinstance(node, nodes.NamedType)
    arguments = ", ".join(map(type_text, node.arguments))
    return node.name.text + (f"<{arguments}>" if arguments else "") + ("?" if node.optional else "")

"""Nodes that every part of the tree is made of: the base, comments, expressions and types.

All nodes are frozen and compared by content: `span` and `trivia` take no part in `==` and `hash`.
Two equal nodes may therefore stand in different places. Facts about a node *at its place* (its
type, the target of a name) are keyed by `id(node)`, not by the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Literal

from tspec.source import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class Comment:
    """One line of comment with its marker: `// why` or `/// documentation`.

    `blank_before`: an empty line stands above it.
    """

    text: str
    blank_before: bool = False
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def is_doc(self) -> bool:
        """True if the comment documents the item below. Four slashes are a line across the page."""
        return self.text.startswith("///") and not self.text.startswith("////")


@dataclass(frozen=True, slots=True)
class Trivia:
    """The comments and empty lines around a node, which are no part of its meaning.

    `leading` stands above the node, documentation included. `trailing` follows it on its last line.
    `opening` follows the brace or bracket that opens it, on the same line. `inner` stands before
    its closing brace. `blank_before`: an empty line stands right above the node, below its leading
    comments.
    """

    leading: tuple[Comment, ...] = ()
    trailing: tuple[Comment, ...] = ()
    opening: tuple[Comment, ...] = ()
    inner: tuple[Comment, ...] = ()
    blank_before: bool = False

    @property
    def comments(self) -> tuple[Comment, ...]:
        return self.leading + self.opening + self.inner + self.trailing


NO_TRIVIA = Trivia()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A part of the tree, where it stands, and the comments around it."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)
    trivia: Trivia = field(default=NO_TRIVIA, compare=False, repr=False)

    @property
    def doc(self) -> str | None:
        """The documentation above the node, without its markers, or None."""
        lines = [c.text[3:].removeprefix(" ") for c in self.trivia.leading if c.is_doc]
        return "\n".join(lines).strip("\n") if lines else None

    def children(self) -> Iterator[Node]:
        """The nodes right below, in the order of the text."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                for item in value:
                    if isinstance(item, Node):
                        yield item

    def walk(self) -> Iterator[Node]:
        """The node and all below it, in the order of the text."""
        yield self
        for child in self.children():
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Word(Node):
    """One word that names something: a field, a declaration, an axis."""

    text: str


@dataclass(frozen=True, slots=True)
class Dotted(Node):
    """A dotted path that is not computed: `std.torch`, `torch.nn.functional.*`."""

    parts: tuple[Word, ...]

    @property
    def text(self) -> str:
        return ".".join(part.text for part in self.parts)


# Expressions


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """Anything that has a value, or names a collection or an event."""


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """`p`, `step`, `float32`; also words that are keywords elsewhere."""

    text: str


@dataclass(frozen=True, slots=True)
class Attribute(Expr):
    """`value.name`; also each dot of `optimizer.step` and of `torch.nn.Linear`."""

    value: Expr
    name: Word


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """`value`, or `name: value`."""

    name: Word | None
    value: Expr


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """`function(arguments)`: a function, a fold, a filter of a collection or of an event."""

    function: Expr
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Index(Expr):
    """`value[index]`."""

    value: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Integer(Expr):
    value: int


@dataclass(frozen=True, slots=True)
class Float(Expr):
    """`text` is how the number was written; without it, Python's shortest way."""

    value: float
    text: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Percentage(Expr):
    """`90%`; `text` is the part before the sign, `value` is 0.9."""

    text: str

    @property
    def value(self) -> float:
        return float(self.text) / 100


@dataclass(frozen=True, slots=True)
class Quantity(Expr):
    """`10 steps`; `unit` is always the singular."""

    amount: int | float
    unit: str


@dataclass(frozen=True, slots=True)
class String(Expr):
    """`"text"`; `value` is the text with its escapes replaced."""

    value: str


@dataclass(frozen=True, slots=True)
class Boolean(Expr):
    value: bool


@dataclass(frozen=True, slots=True)
class List(Expr):
    """`[a, b]`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Set(Expr):
    """`{a, b}`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Negative(Expr):
    """`-value`."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic(Expr):
    """`left + right` and the like."""

    left: Expr
    operator: Literal["+", "-", "*", "/"]
    right: Expr


Comparator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"]


@dataclass(frozen=True, slots=True)
class Comparison(Expr):
    """`a == b`, `a in b`, or a chain that goes one way, `0 <= a < b`.

    One more operand than operators. Only `<` and `<=`, or `>` and `>=`, form chains.
    """

    operands: tuple[Expr, ...]
    operators: tuple[Comparator, ...]

    @property
    def links(self) -> tuple[tuple[Expr, Comparator, Expr], ...]:
        """The single comparisons. The chain is true if all of them are."""
        return tuple(zip(self.operands[:-1], self.operators, self.operands[1:], strict=True))


@dataclass(frozen=True, slots=True)
class Not(Expr):
    value: Expr


@dataclass(frozen=True, slots=True)
class And(Expr):
    """Two operands or more; none is an And."""

    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Expr):
    """Two operands or more; none is an Or."""

    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Implies(Expr):
    """`left implies right`; to the right first: `a implies (b implies c)` needs no parentheses."""

    left: Expr
    right: Expr


# Types


@dataclass(frozen=True, slots=True)
class Type(Node):
    """The type of a field."""


@dataclass(frozen=True, slots=True)
class NamedType(Type):
    """`tensor?`, `list<int>`, `map<string, scalar>`, an entity's name."""

    name: Word
    arguments: tuple[Type, ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Choice(Type):
    """`train | eval`."""

    names: tuple[Word, ...]


def dotted_text(expr: Expr) -> str | None:
    """`a.b.c` for a Name or Attributes of one, None for all else."""
    if isinstance(expr, Name):
        return expr.text
    if isinstance(expr, Attribute):
        owner = dotted_text(expr.value)
        return None if owner is None else f"{owner}.{expr.name.text}"
    return None

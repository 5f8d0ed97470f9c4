"""Nodes of a file and of its declarations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tspec.syntax.expressions import (
    Dotted,
    Expr,
    Node,
    Quantity,
    String,
    Type,
    Word,
)


@dataclass(frozen=True, slots=True)
class Edition(Node):
    """`edition 2026`."""

    year: int


@dataclass(frozen=True, slots=True)
class Module(Node):
    """`module a.b` or `module a.b version "1.2"`; its `doc` documents the whole file."""

    name: Dotted
    version: String | None = None


@dataclass(frozen=True, slots=True)
class RuleSetting(Node):
    """`rule: off`, `rule: stop`: the action of a used rule, set by the file that uses it."""

    rule: Dotted
    action: Word


@dataclass(frozen=True, slots=True)
class Use(Node):
    """`use a.b [version "1.2"] [as c] [with rule: off, ...]`.

    With settings it takes the rules of the module along, and without them its names alone.
    """

    module: Dotted
    version: String | None = None
    alias: Word | None = None
    settings: tuple[RuleSetting, ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration(Node):
    """Anything that stands at the left margin below the `use` lines."""


def keyword(item: Node) -> str:
    """The keyword with which an item of a file begins."""
    return type(item).__name__.removesuffix("Declaration").lower()


@dataclass(frozen=True, slots=True)
class File(Node):
    """A whole file. Comments below the last declaration are its `trivia.inner`."""

    edition: Edition | None
    module: Module | None
    uses: tuple[Use, ...]
    declarations: tuple[Declaration, ...]


@dataclass(frozen=True, slots=True)
class Let(Declaration):
    """`let name = value`."""

    name: Word
    value: Expr


@dataclass(frozen=True, slots=True)
class Reject(Declaration):
    """`reject name because "reason"`: inference does not propose this draft again."""

    name: Word
    because: String


# Vocabulary


@dataclass(frozen=True, slots=True)
class ContextField(Node):
    """`name.part: type`."""

    name: Dotted
    type: Type


@dataclass(frozen=True, slots=True)
class ContextDeclaration(Declaration):
    """`context { ... }`: names known at every moment."""

    fields: tuple[ContextField, ...]


@dataclass(frozen=True, slots=True)
class Group(Declaration):
    """`[extend] group name [= call a.b, c.d]`; without callables the axis of a mesh."""

    name: Word
    callables: tuple[Dotted, ...] = ()
    extend: bool = False


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`name: type` or `name: type = value`; without a value it is the argument of that name."""

    name: Word
    type: Type
    value: Expr | None = None


@dataclass(frozen=True, slots=True)
class Entity(Declaration):
    """`[extend] entity name { fields }`."""

    name: Word
    fields: tuple[Field, ...]
    extend: bool = False


@dataclass(frozen=True, slots=True)
class Event(Declaration):
    """`[extend] event name = call a.b, c.d { fields }`."""

    name: Dotted
    callables: tuple[Dotted, ...]
    fields: tuple[Field, ...] = ()
    extend: bool = False


# Rules


@dataclass(frozen=True, slots=True)
class Clause(Node):
    """One line of a rule, an equivalence, a replay or a test."""


@dataclass(frozen=True, slots=True)
class For(Clause):
    """`for variable in collection`."""

    variable: Word
    collection: Expr


@dataclass(frozen=True, slots=True)
class Across(Clause):
    """`across a, b`."""

    groups: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Every(Node):
    """`every 10 steps`."""

    period: Quantity


@dataclass(frozen=True, slots=True)
class Once(Node):
    """`once`."""


Thinning = Every | Once


@dataclass(frozen=True, slots=True)
class Instant(Clause):
    """`before event` or `after event`."""

    edge: Literal["before", "after"]
    event: Expr
    thinning: Thinning | None = None


@dataclass(frozen=True, slots=True)
class During(Clause):
    """`during event`."""

    event: Expr
    thinning: Thinning | None = None


@dataclass(frozen=True, slots=True)
class Each(Clause):
    """`each step`; `unit` is one of `step`, `microbatch`, `epoch`, `run`."""

    unit: Word
    thinning: Thinning | None = None


Window = Instant | During | Each


@dataclass(frozen=True, slots=True)
class When(Clause):
    """`when condition`."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Ordered(Node):
    """`a before b before c`: each of them has the one to its left before it. Two or more."""

    events: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Contains(Node):
    """`contains event`."""

    event: Expr


@dataclass(frozen=True, slots=True)
class OnlyDuring(Node):
    """`subject only during a or b`."""

    subject: Expr
    events: tuple[Expr, ...]


Claim = Expr | Ordered | Contains | OnlyDuring


@dataclass(frozen=True, slots=True)
class Expect(Clause):
    """`expect claim`."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Consecutive(Node):
    """`after 5 consecutive steps`."""

    count: int


@dataclass(frozen=True, slots=True)
class Frequent(Node):
    """`after 5 of 20 steps`."""

    count: int
    period: Quantity


@dataclass(frozen=True, slots=True)
class Response(Node):
    """An action, at once or when the rule has been broken often enough.

    `action` is one of `warn`, `skip`, `rollback`, `stop`, `raise`.
    """

    action: Word
    often: Consecutive | Frequent | None = None


@dataclass(frozen=True, slots=True)
class Else(Clause):
    """`else response, then response`."""

    responses: tuple[Response, ...]


@dataclass(frozen=True, slots=True)
class Entry(Node):
    """`key: value` or `key: value, value`."""

    key: Word
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Inferred(Clause):
    """`inferred { entries }`: where a draft comes from."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Invariant(Declaration):
    """`[draft] invariant name { clauses }`, its clauses in the order of the fields below.

    `expect` is None only in a file with errors.
    """

    name: Word
    subjects: tuple[For, ...] = ()
    across: Across | None = None
    window: Window | None = None
    when: When | None = None
    expect: Expect | None = None
    otherwise: Else | None = None
    inferred: Inferred | None = None
    draft: bool = False

"""Expressions after resolution: every name looked up, every `let` inlined, every part typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tspec.resolve.program.types import Type
from tspec.source import Span


@dataclass(frozen=True, slots=True)
class _Typed:
    type: Type
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant(_Typed):
    """A value known before the run: number, bool, string, dtype, class path or enumeration member.

    A percentage is its number (`90%` is 0.9). A class is its dotted path.
    """

    value: bool | int | float | str


@dataclass(frozen=True, slots=True)
class ListDisplay(_Typed):
    """`[a, b, c]`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Ambient(_Typed):
    """A name of a `context` block: `step`, `phase`, `loss`, `autocast.enabled`."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable(_Typed):
    """A `for` variable. Its value is the subject's canonical name, or a call."""

    name: str


@dataclass(frozen=True, slots=True)
class WindowCall(_Typed):
    """The call which the window or instant is of: `optimizer.step` in `during optimizer.step`."""


@dataclass(frozen=True, slots=True)
class LastCall(_Typed):
    """`E` in `E.field` elsewhere: the last call of E that returned in the window."""

    event: EventPattern


@dataclass(frozen=True, slots=True)
class Subjects(_Typed):
    """All subjects of a kind (`parameters`), in order of creation.

    The type is `ListOf(Entity(kind))`. Filters compare a field of each with a value; `class: C` is
    the pair `("class", C)` and means an instance of C or of one of a list.
    """

    kind: str
    filters: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Restrict(_Typed):
    """Filters on any other collection: `m.parameters(dtype: float32)`."""

    collection: Expr
    filters: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Calls(_Typed):
    """`calls(E, field: value)`: the calls of E that began in the window, in order. Type ListOf(CallOf)."""

    event: EventPattern


@dataclass(frozen=True, slots=True)
class Field(_Typed):
    """A declared field of a subject or call.

    On a collection: the list of the fields in order without missing ones; of set-valued fields,
    the union.
    """

    base: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Feature(_Typed):
    """A feature of a tensor, or of a list of tensors as one tensor.

    `name` is one of `tspec.builtin.features`. `per` is `row`/`column` for `norm(x, per: row)`, `dim` an int for `std(x, dim: 0)`: then the
    value is a list.
    """

    name: str
    tensor: Expr
    per: str | None = None
    dim: int | None = None


@dataclass(frozen=True, slots=True)
class Cast(_Typed):
    """`cast(x, dtype)`: x as it would be in another dtype; read through features only."""

    tensor: Expr
    dtype: Expr


@dataclass(frozen=True, slots=True)
class Difference(_Typed):
    """`difference(x, y)`: x minus y; read through features only. `change(x)` is the one of x and `old(x)`."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Index(_Typed):
    """`x[0]`, `x[-1]` of a list or shape; `m["key"]` of a map (absent where there is no such key)."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Old(_Typed):
    """`old(x)`: x at the start of the window. `changed(x)` is resolved to digests that differ."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Previous(_Typed):
    """`previous(x)`: x at the instance before, of the same subjects and group."""

    value: Expr


@dataclass(frozen=True, slots=True)
class First(_Typed):
    """`first(x)`: x when the subject came into being."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Present(_Typed):
    """`present(x)`: x is not absent. Unknown where x was not recorded."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Fold(_Typed):
    """A fold of many values to one.

    `name` is one of `tspec.builtin.folds`. `scope`: `list` folds the elements of `value`; `group`
    folds the values that the ranks of the `across` group have for `value`; `time` folds `value` at
    this and the earlier instances of the same subjects and group within the last `over`.
    """

    name: str
    value: Expr
    scope: Literal["list", "group", "time"]
    over: Duration | None = None


@dataclass(frozen=True, slots=True)
class Transpose(_Typed):
    """`transpose(x)` on rank r: the list of `x[r]` of every member in order."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Compare(_Typed):
    """`a < b`. Numbers as IEEE: with NaN all but `!=` is false."""

    op: Literal["==", "!=", "<", "<=", ">", ">="]
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Member(_Typed):
    """`x in y`. With a collection on the left: all of it is in y. A map is in a map if all pairs are."""

    item: Expr
    collection: Expr


@dataclass(frozen=True, slots=True)
class SameObject(_Typed):
    """`x is y`."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic(_Typed):
    """`a + b`, in ints or float64. `/` is always a float; by zero as IEEE."""

    op: Literal["+", "-", "*", "/"]
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Negate(_Typed):
    """`-a`."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Not(_Typed):
    """Kleene's not."""

    value: Expr


@dataclass(frozen=True, slots=True)
class And(_Typed):
    """Kleene's and of two or more."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(_Typed):
    """Kleene's or of two or more."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Implies(_Typed):
    """Kleene's implication."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Function(_Typed):
    """A total function of known values: `log(x)`, `isinstance(p.module, norms)`, `divisible(x, by: 8)`.

    `name` is one of `tspec.builtin.functions`. `isinstance` takes a module (or anything with a `class` field) and a class or list of classes;
    `divisible` of a list is a list of bools. A log of a number <= 0 is as IEEE (-inf, NaN).
    """

    name: str
    arguments: tuple[Expr, ...]


Expr = (
    Constant | ListDisplay | Ambient | Variable | WindowCall | LastCall | Subjects | Restrict | Calls
    | Field | Feature | Cast | Difference | Index | Old | Previous | First | Present | Fold | Transpose
    | Compare | Member | SameObject | Arithmetic | Negate | Not | And | Or | Implies | Function
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Filter:
    """`field: value` in a filter: the field equals the value."""

    field: str
    value: Expr


@dataclass(frozen=True, slots=True)
class EventPattern:
    """An event, or bare callables, with filters: `optimizer.step(optimizer: o)`.

    `event` is the event's name; a bare callable (`torch.nn.ReLU.forward`) is an event by its own
    dotted path, and several bare callables in one `calls(...)` are several patterns' union:
    `events` lists all.
    """

    events: tuple[str, ...]
    filters: tuple[Filter, ...] = ()


UnitName = Literal["step", "microbatch", "epoch"]


@dataclass(frozen=True, slots=True)
class Duration:
    """`20 steps`: the range of a fold's look-back, or the interval between windows."""

    count: int
    unit: UnitName

"""Rules after resolution: every name looked up, every `let` inlined, every expression typed.

The reference interpreter, the columnar checker, the hook compiler, z3's encoding and inference's
emitter all read these values. They hold no syntax: two spellings of one meaning are one value here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tspec.builtin.actions import ActionName
from tspec.resolve.program.declarations import AmbientDeclaration as AmbientDeclaration
from tspec.resolve.program.declarations import EntityDeclaration as EntityDeclaration
from tspec.resolve.program.declarations import EventDeclaration as EventDeclaration
from tspec.resolve.program.declarations import EventVariant as EventVariant
from tspec.resolve.program.declarations import FieldDeclaration as FieldDeclaration
from tspec.resolve.program.declarations import GroupDeclaration as GroupDeclaration
from tspec.resolve.program.declarations import TestDeclaration as TestDeclaration
from tspec.resolve.program.declarations import Vocabulary as Vocabulary
from tspec.resolve.program.sharding import DimsDeclaration as DimsDeclaration
from tspec.resolve.program.sharding import LayoutDeclaration as LayoutDeclaration
from tspec.resolve.program.sharding import MeshDeclaration as MeshDeclaration
from tspec.resolve.program.spans import ClauseSpans
from tspec.resolve.program.trials import EquivalenceDeclaration as EquivalenceDeclaration
from tspec.resolve.program.trials import ReplayDeclaration as ReplayDeclaration
from tspec.resolve.program.types import Type
from tspec.source import Source, Span

# --- expressions --------------------------------------------------------------------------------


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


# --- claims and rules ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Holds:
    """`expect EXPR`."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Ordered:
    """`expect A before B before C`: each B in the window has an earlier A in it, and so on."""

    events: tuple[EventPattern, ...]
    edge: Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Contains:
    """`expect contains E`: at least one call of E began in the window."""

    event: EventPattern


@dataclass(frozen=True, slots=True)
class OnlyDuring:
    """`expect x only during A or B`.

    `subject` is a call variable, or `changed(x)` given here as the tensor x itself (`change` true).
    """

    subject: Expr
    change: bool
    events: tuple[EventPattern, ...]


Claim = Holds | Ordered | Contains | OnlyDuring


@dataclass(frozen=True, slots=True)
class For:
    """`for v in collection`."""

    variable: str
    collection: Expr


@dataclass(frozen=True, slots=True)
class Axis:
    """`across dp`: a group by its axis name."""

    name: str


@dataclass(frozen=True, slots=True)
class GroupField:
    """`across c.group`, `across p.replicas`: the group that a call or layout names."""

    value: Expr


SpanName = Literal["step", "microbatch", "epoch", "run"]


@dataclass(frozen=True, slots=True)
class Window:
    """The windows in which a rule is evaluated.

    `before`/`after`: one instant, an edge of a call. `during`: a call from start to end. `each`: a
    span. `calls`: the rule has no window clause, and its only `for c in calls(E)` supplies it: the
    window is c's call from start to end, and `event` is E. `every` thins by the unit; `once` keeps
    the first for each choice of subjects and group.
    """

    kind: Literal["before", "after", "during", "each", "calls"]
    event: EventPattern | None = None
    span: SpanName | None = None
    every: Duration | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """One action of `else`, with the condition under which it is due.

    Without a condition it is due at once. `consecutive`: after so many failing checks in a row.
    `frequent`: after `frequent` failing checks among the last `among` (a count of a unit).
    """

    action: ActionName
    consecutive: int | None = None
    frequent: int | None = None
    among: Duration | None = None

    def due_whenever(self, other: Response) -> bool:
        """True if the response is due at least whenever `other` is."""
        if self.consecutive is not None:
            return other.consecutive is not None and self.consecutive <= other.consecutive
        if self.frequent is None or self.among is None:
            return True
        if other.frequent is None or other.among is None:
            return False
        return (
            self.among.unit == other.among.unit
            and self.frequent <= other.frequent
            and self.among.count >= other.among.count
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """One invariant."""

    name: str
    module: str
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)
    """The span of the invariant's name."""
    doc: str = field(compare=False)
    draft: bool
    subjects: tuple[For, ...]
    across: tuple[Axis | GroupField, ...]
    window: Window
    when: Expr | None
    expect: Claim
    responses: tuple[Response, ...]
    spans: ClauseSpans = field(default=ClauseSpans(), compare=False, repr=False)
    set_by: str = field(default="", compare=False)
    """The setting that changed the action or switched the rule off: `tspec.toml:7`."""

    @property
    def qualified(self) -> str:
        """Module and name: `std.hygiene.gradients_are_cleared`."""
        return f"{self.module}.{self.name}" if self.module else self.name


@dataclass(frozen=True, slots=True)
class Program:
    """A program: rules in source order, and the vocabulary.

    `rules` are those of the requested files. Modules that are only `use`d give vocabulary and
    `let`s. They give no rules, unless a requested pack names them.
    """

    rules: tuple[Rule, ...]
    vocabulary: Vocabulary
    meshes: tuple[MeshDeclaration, ...] = ()
    dims: tuple[DimsDeclaration, ...] = ()
    layouts: tuple[LayoutDeclaration, ...] = ()
    equivalences: tuple[EquivalenceDeclaration, ...] = ()
    replays: tuple[ReplayDeclaration, ...] = ()
    tests: tuple[TestDeclaration, ...] = ()
    used: tuple[Rule, ...] = field(default=(), repr=False)
    """Rules of modules that are only used, which tests may name."""
    off: tuple[Rule, ...] = ()
    """Rules that a setting switched off; `Rule.set_by` names it."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of modules that declare one (`module a.b version "1.2"`), by module name."""

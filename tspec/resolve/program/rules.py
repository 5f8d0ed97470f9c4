"""Rules after resolution: every name looked up, every `let` inlined, every expression typed.

The reference interpreter, the columnar checker, the hook compiler, z3's encoding and inference's
emitter all read these values. They hold no syntax: two spellings of one meaning are one value here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tspec.builtin.actions import ActionName, strength
from tspec.due import ActionRecord
from tspec.resolve.program.declarations import AmbientDeclaration as AmbientDeclaration
from tspec.resolve.program.declarations import EntityDeclaration as EntityDeclaration
from tspec.resolve.program.declarations import EventDeclaration as EventDeclaration
from tspec.resolve.program.declarations import EventVariant as EventVariant
from tspec.resolve.program.declarations import FieldDeclaration as FieldDeclaration
from tspec.resolve.program.declarations import GroupDeclaration as GroupDeclaration
from tspec.resolve.program.declarations import TestDeclaration as TestDeclaration
from tspec.resolve.program.declarations import Vocabulary as Vocabulary
from tspec.resolve.program.expressions import Ambient as Ambient
from tspec.resolve.program.expressions import And as And
from tspec.resolve.program.expressions import Arithmetic as Arithmetic
from tspec.resolve.program.expressions import Calls as Calls
from tspec.resolve.program.expressions import Cast as Cast
from tspec.resolve.program.expressions import Compare as Compare
from tspec.resolve.program.expressions import Constant as Constant
from tspec.resolve.program.expressions import Difference as Difference
from tspec.resolve.program.expressions import Duration as Duration
from tspec.resolve.program.expressions import EventPattern as EventPattern
from tspec.resolve.program.expressions import Expr as Expr
from tspec.resolve.program.expressions import Feature as Feature
from tspec.resolve.program.expressions import Field as Field
from tspec.resolve.program.expressions import Filter as Filter
from tspec.resolve.program.expressions import First as First
from tspec.resolve.program.expressions import Fold as Fold
from tspec.resolve.program.expressions import Function as Function
from tspec.resolve.program.expressions import Implies as Implies
from tspec.resolve.program.expressions import Index as Index
from tspec.resolve.program.expressions import LastCall as LastCall
from tspec.resolve.program.expressions import ListDisplay as ListDisplay
from tspec.resolve.program.expressions import Member as Member
from tspec.resolve.program.expressions import Negate as Negate
from tspec.resolve.program.expressions import Not as Not
from tspec.resolve.program.expressions import Old as Old
from tspec.resolve.program.expressions import Or as Or
from tspec.resolve.program.expressions import Present as Present
from tspec.resolve.program.expressions import Previous as Previous
from tspec.resolve.program.expressions import Restrict as Restrict
from tspec.resolve.program.expressions import SameObject as SameObject
from tspec.resolve.program.expressions import Subjects as Subjects
from tspec.resolve.program.expressions import Transpose as Transpose
from tspec.resolve.program.expressions import UnitName as UnitName
from tspec.resolve.program.expressions import Variable as Variable
from tspec.resolve.program.expressions import WindowCall as WindowCall
from tspec.resolve.program.sharding import DimsDeclaration as DimsDeclaration
from tspec.resolve.program.sharding import LayoutDeclaration as LayoutDeclaration
from tspec.resolve.program.sharding import MeshDeclaration as MeshDeclaration
from tspec.resolve.program.spans import ClauseSpans
from tspec.resolve.program.trials import EquivalenceDeclaration as EquivalenceDeclaration
from tspec.resolve.program.trials import ReplayDeclaration as ReplayDeclaration
from tspec.source import Source, Span
from tspec.values import LoopSpan


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


SpanName = Literal[LoopSpan, "run"]


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

    @property
    def conditional(self) -> bool:
        """True if the action is due only after several failing checks."""
        return self.record.conditional

    @property
    def record(self) -> ActionRecord:
        """The response as jobs and reports count checks for it."""
        among = None if self.among is None else (self.among.count, self.among.unit)
        return ActionRecord(self.action, self.consecutive, self.frequent, among)

    def covers(self, other: Response) -> bool:
        """True if the response is due whenever `other` is, and does at least as much."""
        return strength(self.action) >= strength(other.action) and self.due_whenever(other)

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

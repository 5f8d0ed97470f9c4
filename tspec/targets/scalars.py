"""Python for the value of an expression on one rank, at one instant of a window.

A frame is the name of the variable that holds the instant: `end`, `was`, `now`, and `end.begun`
for fields as they were first sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tspec.plan.events import is_windows_call
from tspec.plan.model import Plan, RulePlan
from tspec.plan.reads import feature_key
from tspec.resolve.program import rules as r
from tspec.resolve.program import types as t
from tspec.resolve.program.queries import reads_entities_only
from tspec.resolve.program.text import text
from tspec.resolve.program.types import is_collection, plain
from tspec.resolve.program.walk import expressions
from tspec.targets.idle import STEADY
from tspec.targets.literals import identifier, literal

COMPARE = {
    "==": "equal",
    "!=": "unequal",
    "<": "less",
    "<=": "at_most",
    ">": "greater",
    ">=": "at_least",
}
ARITHMETIC = {"+": "plus", "-": "minus", "*": "times", "/": "quotient"}


class NotCompiled(Exception):
    """An expression without generated code. The message names it."""


@dataclass
class Scalars:
    """The expressions of one rule's function: the columns that it reads, and its variables."""

    plan: Plan
    rule: RulePlan
    variables: dict[str, str] = field(default_factory=dict)
    """`for` variable -> the Python expression of its value."""
    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Entity variable -> (its kind, the Python variable that holds its name)."""
    window: str = "w"
    """The Python variable that holds the window."""
    columns: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """(frame, kind, field) -> the Python variable that holds the column."""

    hoisting: bool = False
    """There are loops. Values that do not depend on their variables are computed before them."""
    hoisted: dict[tuple[str, r.Expr], str] = field(default_factory=dict)
    """(frame, expression) -> the variable that holds its value."""

    bound: dict[tuple[str, r.Expr], str] = field(default_factory=dict)
    """(frame, expression) -> the variable that holds its value for these subjects."""

    waiting: bool = True
    """Code may wait for a context value that a device still has. Otherwise it is not recorded."""

    _column_statements: list[str] = field(default_factory=list, init=False)
    _hoisted_statements: list[str] = field(default_factory=list, init=False)
    """The statements that set these variables, until they are taken."""

    def take_declarations(self) -> list[str]:
        """Take the statements that set the variables of columns and hoisted values. Each is taken once.
        Columns come first, since a hoisted value may read them.
        """
        taken = [*self._column_statements, *self._hoisted_statements]
        self._column_statements.clear()
        self._hoisted_statements.clear()
        return taken

    def code(self, expr: r.Expr, frame: str) -> str:
        """The Python expression for a value. Raises NotCompiled."""
        if (frame, expr) in self.bound:
            return self.bound[frame, expr]
        if self.hoisting and _is_invariant(expr):
            key = (frame, expr)
            if key not in self.hoisted:
                code = self.direct(expr, frame)
                name = f"h{len(self.hoisted)}_{_prefix(frame)}{identifier(text(expr))[:40]}"
                self.hoisted[key] = name
                self._hoisted_statements.append(f"{name} = {code}")
            return self.hoisted[key]
        return self.direct(expr, frame)

    def direct(self, expr: r.Expr, frame: str) -> str:
        """The same, computed where it stands."""
        compile_one = _CODE.get(type(expr))
        if compile_one is None:
            raise NotCompiled(f"{type(expr).__name__} has no code")
        return compile_one(self, expr, frame)

    def column(self, frame: str, kind: str, name: str) -> str:
        """The variable that holds a column; it is read at the top of the function."""
        key = (frame, kind, name)
        if key not in self.columns:
            variable = f"c{len(self.columns)}_{_prefix(frame)}{identifier(kind)}_{identifier(name)}"
            self.columns[key] = variable
            code = f"{frame}.column({literal(kind)}, {literal(name)})"
            self._column_statements.append(f"{variable} = {code}")
        return self.columns[key]

    def pattern(self, event: r.EventPattern, frame: str) -> str:
        """A pattern and the values of its filters, as two arguments."""
        found = self.plan.pattern(event)
        wanted = "".join(f"{self.code(one.value, frame)}, " for one in event.filters)
        return f"P{found.number}, ({wanted.rstrip()})"

    def is_own(self, expr: r.Expr) -> bool:
        """True if an expression is the window's own call, whose fields do not change within the
        window.
        """
        if isinstance(expr, r.WindowCall):
            return True
        clauses = [one for one in self.rule.rule.subjects if is_windows_call(one, self.rule.rule)]
        return isinstance(expr, r.Variable) and any(one.variable == expr.name for one in clauses)


def _prefix(frame: str) -> str:
    """The prefix of a variable that marks the instant of its reading, if that is not the end."""
    return {"was": "old_", "end.begun": "first_", "was.begun": "old_first_"}.get(frame, "")


_HOISTED = (
    r.Subjects,
    r.Restrict,
    r.Calls,
    r.LastCall,
    r.Field,
    r.Feature,
    r.Fold,
    r.Ambient,
    r.Function,
)


def _is_invariant(expr: r.Expr) -> bool:
    """Worth computing once: no variable is in it, and no feature of the call, which is read when asked for."""
    if isinstance(expr, (r.Constant, r.WindowCall)):
        return False
    nodes = tuple(expressions(expr))
    if any(isinstance(node, r.Variable) for node in nodes):
        return False
    if any(isinstance(node, r.Feature) for node in nodes) and any(
        isinstance(node, r.WindowCall) for node in nodes
    ):
        return False
    return any(isinstance(node, _HOISTED) for node in nodes)


def _list(s: Scalars, items: tuple[r.Expr, ...], frame: str) -> str:
    return "(" + "".join(f"{s.code(item, frame)}, " for item in items).rstrip() + ")"


def _arguments(s: Scalars, items: tuple[r.Expr, ...], frame: str) -> str:
    return ", ".join(s.code(item, frame) for item in items)


def _one_by_one(s: Scalars, items: tuple[r.Expr, ...], frame: str) -> str:
    """Arguments of `both` and `either`; those that read tensors are computed only if none before decides."""
    codes = [s.code(item, frame) for item in items]
    return ", ".join(
        f"lambda: {code}" if waits(item, place) and "(" in code else code
        for place, (code, item) in enumerate(zip(codes, items, strict=True))
    )


def waits(item: r.Expr, place: int) -> bool:
    """True if an item of an `and` or `or` is read only if no earlier item decides it."""
    return place > 0 and _reads_tensors(item)


def _reads_tensors(expr: r.Expr) -> bool:
    return any(isinstance(node, (r.Feature, r.Fold)) for node in expressions(expr))


def _ambient(s: Scalars, e: r.Ambient, frame: str) -> str:
    if e.name == "rank":
        return f"{s.window}.rank"
    read = "ambient" if s.waiting or e.name in STEADY else "arrived"
    return f"{frame}.{read}({literal(e.name)})"


def _variable(s: Scalars, e: r.Variable, frame: str) -> str:
    return s.variables[e.name]


def _last_call(s: Scalars, e: r.LastCall, frame: str) -> str:
    return f"w.latest({s.pattern(e.event, frame)}, {frame})"


def _calls(s: Scalars, e: r.Calls, frame: str) -> str:
    return f"w.calls({s.pattern(e.event, frame)}, {frame})"


def _subjects(s: Scalars, e: r.Subjects, frame: str) -> str:
    found = f"w.refs({literal(e.kind)}, {frame})"
    return _filtered(s, found, e.filters, frame)


def _restrict(s: Scalars, e: r.Restrict, frame: str) -> str:
    return _filtered(s, s.code(e.collection, frame), e.filters, frame)


def _filtered(s: Scalars, collection: str, filters: tuple[r.Filter, ...], frame: str) -> str:
    if not filters:
        return collection
    wanted = "".join(f"({literal(one.field)}, {s.code(one.value, frame)}), " for one in filters)
    return f"{frame}.restricted({collection}, ({wanted.rstrip()}))"


def _field(s: Scalars, e: r.Field, frame: str) -> str:
    name = literal(e.name)
    if s.is_own(e.base):
        return f"own({s.code(e.base, frame)}, {name})"
    if isinstance(e.base, r.Variable) and e.base.name in s.names:
        kind, variable = s.names[e.base.name]
        return f"{s.column(frame, kind, e.name)}.get({variable}, NOT_RECORDED)"
    base = s.code(e.base, frame)
    if is_collection(e.base.type) or isinstance(plain(e.base.type), t.ListOf):
        union = isinstance(e.type, t.SetOf)
        return f"{frame}.field_of_each({base}, {name}, {union})"
    return f"{frame}.field({base}, {name})"


def _feature(s: Scalars, e: r.Feature, frame: str) -> str:
    key = literal(feature_key(e))
    if isinstance(e.tensor, r.Cast):
        inner, dtype = s.code(e.tensor.tensor, frame), s.code(e.tensor.dtype, frame)
        return f"cast_feature({inner}, {dtype}, {key})"
    if isinstance(e.tensor, r.Difference):
        left, right = s.code(e.tensor.left, frame), s.code(e.tensor.right, frame)
        return f"difference_feature({s.window}.now.source, {left}, {right}, {key})"
    tensor = s.code(e.tensor, frame)
    if is_collection(e.tensor.type):
        return f"feature({frame}.listed({tensor}), {key})"
    return f"feature({tensor}, {key})"


def _tensor_of(s: Scalars, e: r.Cast, frame: str) -> str:
    return s.code(e.tensor, frame)


def _index(s: Scalars, e: r.Index, frame: str) -> str:
    return f"indexed({s.code(e.base, frame)}, {s.code(e.index, frame)})"


def _old(s: Scalars, e: r.Old, frame: str) -> str:
    return s.code(e.value, "was.begun" if frame.endswith(".begun") else "was")


def _first(s: Scalars, e: r.First, frame: str) -> str:
    if not reads_entities_only(e.value):
        raise NotCompiled("first(x) of an instance in a place that looks at one instant")
    return s.code(e.value, frame if frame.endswith(".begun") else f"{frame}.begun")


def _fold(s: Scalars, e: r.Fold, frame: str) -> str:
    if e.scope != "list":
        raise NotCompiled(f"a fold over {e.scope} in a place that looks at one instant")
    value = s.code(e.value, frame)
    if e.name not in _UNORDERED:
        value = f"{frame}.listed({value})"
    return f"fold_list({literal(e.name)}, {value})"


_UNORDERED = ("count", "any", "all")
"""Folds that come to the same in any order."""


def _function(s: Scalars, e: r.Function, frame: str) -> str:
    if e.name == "isinstance":
        value, wanted = e.arguments
        return f"is_of_class({frame}.class_of({s.code(value, frame)}), {s.code(wanted, frame)})"
    return f"apply({literal(e.name)}, {_arguments(s, e.arguments, frame)})"


def _two(function: str) -> Callable[[Scalars, Any, str], str]:
    return lambda s, e, frame: f"{function}({s.code(e.left, frame)}, {s.code(e.right, frame)})"


_CODE: Mapping[type, Callable[[Scalars, Any, str], str]] = {
    r.Constant: lambda s, e, frame: literal(e.value),
    r.ListDisplay: lambda s, e, frame: _list(s, e.items, frame),
    r.Ambient: _ambient,
    r.Variable: _variable,
    r.WindowCall: lambda s, e, frame: f"{s.window}.call",
    r.LastCall: _last_call,
    r.Subjects: _subjects,
    r.Restrict: _restrict,
    r.Calls: _calls,
    r.Field: _field,
    r.Feature: _feature,
    r.Cast: _tensor_of,
    r.Difference: lambda s, e, frame: s.code(e.left, frame),
    r.Index: _index,
    r.Old: _old,
    r.First: _first,
    r.Present: lambda s, e, frame: f"present({s.code(e.value, frame)})",
    r.Fold: _fold,
    r.Compare: lambda s, e, frame: _two(COMPARE[e.op])(s, e, frame),
    r.Member: lambda s, e, frame: (
        f"contained({s.code(e.item, frame)}, {s.code(e.collection, frame)})"
    ),
    r.SameObject: _two("identical"),
    r.Arithmetic: lambda s, e, frame: _two(ARITHMETIC[e.op])(s, e, frame),
    r.Negate: lambda s, e, frame: f"opposite({s.code(e.value, frame)})",
    r.Not: lambda s, e, frame: f"negation({s.code(e.value, frame)})",
    r.And: lambda s, e, frame: f"both({_one_by_one(s, e.items, frame)})",
    r.Or: lambda s, e, frame: f"either({_one_by_one(s, e.items, frame)})",
    r.Implies: _two("implied"),
    r.Function: _function,
}

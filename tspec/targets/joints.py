"""Python for decisions from several members or from earlier instances: one list per value.

A value that one rank reads at one instant is a *leaf*. Everything above a look-back or a fold over
the group is a statement that makes the list of a value, one element for each member.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tspec.resolve.program import rules as r
from tspec.resolve.program.queries import looks_back, names_call
from tspec.resolve.program.text import text
from tspec.resolve.program.walk import operands, walk
from tspec.targets.literals import comment, literal
from tspec.targets.scalars import ARITHMETIC, COMPARE, NotCompiled


def is_leaf(expr: r.Expr) -> bool:
    """True if one rank reads the expression at one instant: it has no look-back and no fold over
    the group.
    """
    return not looks_back(expr) and not any(
        isinstance(part, r.Transpose) or (isinstance(part, r.Fold) and part.scope == "group")
        for part in walk(expr)
    )


@dataclass
class JointStatements:
    """The statements of one rule's joint decision, and the leaves that each rank sends."""

    rule: int
    """The rule's number."""
    every: r.Duration | None
    times: list[tuple[str, str]] = field(default_factory=list)
    """Constants of the module with the ranges over which folds over time look back."""
    leaves: dict[tuple[str, r.Expr], int] = field(default_factory=dict)
    """(frame, expression) -> place among the leaves."""
    statements: list[str] = field(default_factory=list)
    bound: int = 0
    """The number of variables."""
    nodes: int = 0
    made: dict[tuple[str, r.Expr], str] = field(default_factory=dict)
    apart: frozenset[r.Expr] = frozenset()
    """The expressions that findings show. They are separate leaves, so expressions that contain
    them are decided here.
    """

    def lower(self, expr: r.Expr, frame: str) -> str:
        """The variable that holds the list of an expression's values."""
        key = (frame, expr)
        if key not in self.made:
            self.made[key] = self._lower(expr, frame)
        return self.made[key]

    def leaf(self, expr: r.Expr, frame: str) -> int:
        """The place of a leaf."""
        return self.leaves.setdefault((frame, expr), len(self.leaves))

    def bind(self, code: str) -> str:
        """A new variable for a list."""
        name = f"v{self.bound}"
        self.bound += 1
        self.statements.append(f"{name} = {code}")
        return name

    def node(self) -> int:
        """A new number for a node that keeps state between instances."""
        self.nodes += 1
        return self.nodes - 1

    def _lower(self, expr: r.Expr, frame: str) -> str:
        if isinstance(expr, r.Constant):
            return self.bind(f"constant(members, {literal(expr.value)})")
        if is_leaf(expr) and not self._holds_apart(expr):
            self.statements.append(
                f"# {comment(f'old({text(expr)})' if frame == 'was' else text(expr))}"
            )
            return self.bind(f"leaf(members, {self.leaf(expr, frame)})")
        match expr:
            case r.Old(value=value):
                return self.lower(value, "was")
            case r.Previous(value=value):
                inner = self.lower(value, frame)
                return self.bind(f"previous(pasts, {self.node()}, {inner})")
            case r.First(value=value):
                inner = self.lower(value, frame)
                function = "first_on_rank" if names_call(value) else "first"
                return self.bind(f"{function}(pasts, {self.node()}, {inner})")
            case r.Fold():
                return self._fold(expr, frame)
            case r.Transpose(value=value):
                return self.bind(f"transpose(members, {self.lower(value, frame)}, places)")
            case _:
                return self._operator(expr, frame)

    def _holds_apart(self, expr: r.Expr) -> bool:
        """True if an operator contains a value that findings show."""
        if expr in self.apart or not isinstance(expr, _OPERATORS):
            return False
        return any(part in self.apart for one in operands(expr) for part in walk(one))

    def _fold(self, expr: r.Fold, frame: str) -> str:
        inner = self.lower(expr.value, frame)
        name = literal(expr.name)
        if expr.scope == "group":
            return self.bind(f"group_fold(members, {name}, {inner})")
        if expr.scope == "list":
            return self.bind(f"[fold_list({name}, a) for a in {inner}]")
        if expr.over is None:
            raise NotCompiled("a fold over time without a duration")
        count, unit = expr.over.count, expr.over.unit
        stride = self.every.count if self.every is not None and self.every.unit == unit else 1
        node = self.node()
        time = f"T{self.rule}_{node}"
        self.times.append(
            (
                time,
                f"TimeFold(node={node}, name={name}, last={count}, unit={literal(unit)}, stride={stride})",
            )
        )
        return self.bind(f"over(pasts, indices, {inner}, {time})")

    def _operator(self, expr: r.Expr, frame: str) -> str:
        match expr:
            case r.Present(value=value):
                return self._map("present({0})", (value,), frame)
            case r.Negate(value=value):
                return self._map("opposite({0})", (value,), frame)
            case r.Not(value=value):
                return self._map("negation({0})", (value,), frame)
            case r.Compare(op=op, left=left, right=right):
                return self._map(f"{COMPARE[op]}({{0}}, {{1}})", (left, right), frame)
            case r.Arithmetic(op=op, left=left, right=right):
                return self._map(f"{ARITHMETIC[op]}({{0}}, {{1}})", (left, right), frame)
            case r.SameObject(left=left, right=right):
                return self._map("identical({0}, {1})", (left, right), frame)
            case r.Implies(left=left, right=right):
                return self._map("implied({0}, {1})", (left, right), frame)
            case r.Member(item=item, collection=collection):
                return self._map("contained({0}, {1})", (item, collection), frame)
            case r.Index(base=base, index=index):
                return self._map("indexed({0}, {1})", (base, index), frame)
            case r.And(items=items):
                return self._map(f"both({_places(len(items))})", items, frame)
            case r.Or(items=items):
                return self._map(f"either({_places(len(items))})", items, frame)
            case r.ListDisplay(items=items):
                return self._map(f"({_places(len(items))},)", items, frame)
            case r.Function(name=name, arguments=arguments) if name != "isinstance":
                code = f"apply({literal(name)}, {_places(len(arguments))})"
                return self._map(code, arguments, frame)
            case _:
                raise NotCompiled(f"{type(expr).__name__} of what a look-back or the group gives")

    def _map(self, code: str, operands: tuple[r.Expr, ...], frame: str) -> str:
        """A statement that applies an operator member by member."""
        lists = [self.lower(one, frame) for one in operands]
        variables = [f"a{place}" for place in range(len(lists))]
        body = code.format(*variables)
        if len(lists) == 1:
            return self.bind(f"[{body} for a0 in {lists[0]}]")
        return self.bind(
            f"[{body} for {', '.join(variables)} in zip({', '.join(lists)}, strict=True)]"
        )


_OPERATORS = (
    r.Negate, r.Not, r.Compare, r.Arithmetic, r.SameObject, r.Implies, r.Member, r.And, r.Or, r.ListDisplay,
)  # fmt: skip
"""Operators that are applied member by member. Functions are not: `isinstance` asks the rank
itself.
"""


def _places(count: int) -> str:
    return ", ".join(f"{{{place}}}" for place in range(count))

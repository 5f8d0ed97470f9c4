"""A condition in z3: three-valued, with absent and not recorded as separate states, floats as IEEE.

A read (a field, a feature, a fold) is an unknown; only operators are interpreted. Where an operator
is left open (products of unknowns, regular expressions, lists), z3 admits more than a job can do.
So everything z3 proves is true, and unproved claims are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import z3

from tspec.builtin.functions import FUNCTIONS
from tspec.logic.encoded import Encoded
from tspec.logic.numbers import Numbers
from tspec.logic.over_time import longer_and_shorter
from tspec.logic.sorts import Sorts
from tspec.logic.tensor_facts import (
    OF_ELEMENTS,
    InZ3,
    TensorRead,
    bounds_of,
    feature_of_tensor,
    related,
)
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.types import plain
from tspec.resolve.program.walk import expressions
from tspec.values import STEP_OF_RUN

Leaf = tuple[Expr, bool]
"""An expression that is read, and whether it is read at the start of the window."""

ALWAYS = frozenset({"step", STEP_OF_RUN, "epoch", "microbatch", "phase", "rank"})
"""Context that is known at every instant."""


class Encoder:
    """The conditions of one question, in one z3 context of its own, so that answers repeat."""

    def __init__(
        self, given: Mapping[str, bool | int | str] | None = None, *, exact: bool = False
    ) -> None:
        """`exact`: float sums and products as IEEE computes them, which takes z3 far longer."""
        self.context = z3.Context()
        self.sorts = Sorts(self.context)
        self.numbers = Numbers(self.sorts, exact)
        self.given = dict(given or {})
        self.leaves: dict[Leaf, Encoded] = {}
        self.reckoned: dict[Leaf, Encoded] = {}
        """Sums and products whose value z3 does not know."""
        self._encoded: dict[Leaf, Encoded] = {}
        self._features: dict[tuple[TensorRead, bool], dict[str, Encoded]] = {}
        """The features of each tensor that are unknowns of this encoder."""
        self._axioms: list[z3.BoolRef] = []
        self._yes = z3.BoolVal(True, self.context)
        self._no = z3.BoolVal(False, self.context)
        self._numbered: Iterator[int] = count()
        self._beside: tuple[Encoder, Callable[[Leaf], bool]] | None = None

    def beside(self, shared: Callable[[Leaf], bool]) -> Encoder:
        """An encoder of the same question for another rank or rule.

        Reads that are `shared` are the same unknown in both; all others are unknowns of its own.
        """
        other = Encoder.__new__(Encoder)
        other.context, other.sorts, other.numbers = self.context, self.sorts, self.numbers
        other.given, other.leaves, other.reckoned, other._encoded = self.given, {}, {}, {}
        other._features = {}
        other._axioms, other._yes, other._no = self._axioms, self._yes, self._no
        other._numbered, other._beside = self._numbered, (self, shared)
        return other

    @property
    def axioms(self) -> Sequence[z3.BoolRef]:
        """Facts about the unknowns that hold in every job; each condition adds some."""
        return self._axioms

    def lemmas(self) -> Sequence[z3.BoolRef]:
        """Facts about sums, products and folds over time."""
        return [*self.numbers.lemmas(), *self.over_time()]

    def over_time(self) -> Sequence[z3.BoolRef]:
        """Facts about this encoder's own folds over time."""
        return list(longer_and_shorter(self.leaves, self.numbers))

    def encode(self, expr: Expr, start: bool = False) -> Encoded:
        """The meaning of an expression, read at the window's end or start."""
        key = (expr, start)
        if key not in self._encoded:
            meaning = _MEANING.get(type(expr), Encoder._free)
            self._encoded[key] = meaning(self, expr, start)
        return self._encoded[key]

    # --- leaves ---------------------------------------------------------------------------------

    def _leaf(self, expr: Expr, start: bool, sort: z3.SortRef | None = None) -> Encoded:
        """A new unknown, or the one that stands for the same read."""
        key = (expr, start and moves(expr))
        if key not in self.leaves:
            self.leaves[key] = self._known_beside(key, sort) or self._own(key, sort)
        return self.leaves[key]

    def _own(self, key: Leaf, sort: z3.SortRef | None) -> Encoded:
        """A new unknown of this encoder, in its range, and related with other features of its tensor."""
        expr, start = key
        leaf = self._unknown(expr, sort)
        self._axioms += self.numbers.range_of(bounds_of(expr), leaf.known, leaf.value)
        feature = feature_of_tensor(expr)
        if feature is not None:
            tensor, name = feature
            features = self._features.setdefault((tensor, start), {})
            if name in OF_ELEMENTS:
                for other in features.values():  # whoever reads the elements reads all of them
                    self._axioms.append(leaf.known == other.known)
                    self._axioms.append(leaf.absent == other.absent)
                features[name] = leaf
                self._axioms += self._related(name, features)
        return leaf

    def _related(self, name: str, features: Mapping[str, Encoded]) -> Iterator[z3.BoolRef]:
        algebra = InZ3(self.sorts)
        for relation, found in related(name, features):
            if relation.exact:
                known = self._all([each.known for each in found])
                holds = relation.holds(algebra, *(each.value for each in found))
                yield z3.Implies(known, holds)

    def _known_beside(self, key: Leaf, sort: z3.SortRef | None) -> Encoded | None:
        if self._beside is None or not self._beside[1](key):
            return None
        return self._beside[0]._leaf(*key, sort)

    def _unknown(self, expr: Expr, sort: z3.SortRef | None) -> Encoded:
        number = next(self._numbered)
        known, absent = (z3.Bool(f"{what}{number}", self.context) for what in ("known", "absent"))
        sort = self.sorts.of(expr.type) if sort is None else sort
        leaf = Encoded(known, absent, z3.Const(f"value{number}", sort))
        self._axioms.append(z3.Not(z3.And(known, absent)))
        kind = plain(expr.type)
        if isinstance(kind, types.Enum) and leaf.value.sort() == self.sorts.text:
            members = [z3.StringVal(each, self.context) for each in kind.members]
            self._axioms.append(self._any([leaf.value == each for each in members]))
        return leaf

    def _free(self, expr: Expr, start: bool) -> Encoded:
        return self._leaf(expr, start)

    def _read_from(self, expr: Expr, start: bool, *bases: Expr) -> Encoded:
        """A read that is missing for the same reason as its base."""
        leaf = self._leaf(expr, start)
        found = [self.encode(base, start) for base in bases]
        all_reached = True
        reached: list[z3.BoolRef] = []
        for each in found:
            if each.known is not self._yes:
                self._axioms.append(z3.Implies(leaf.known, each.known))
            if all_reached and each.known is not self._yes:
                missing = z3.And(*reached, z3.Not(each.known))
                self._axioms.append(z3.Implies(missing, leaf.absent == each.absent))
                reached.append(each.known)
            # A missing value inside a list is found before one in a later operand.
            all_reached = all_reached and each.value.sort() != self.sorts.opaque
        return leaf

    def _constant(self, expr: rules.Constant, start: bool) -> Encoded:
        return Encoded(self._yes, self._no, self.sorts.constant(expr))

    def _variable(self, expr: Expr, start: bool) -> Encoded:
        leaf = self._leaf(expr, False)
        return self._certain(expr, leaf)

    def _certain(self, expr: Expr, leaf: Encoded) -> Encoded:
        """The leaf, which is never missing."""
        self._axioms.append(leaf.known)
        return Encoded(self._yes, self._no, leaf.value)

    def _ambient(self, expr: rules.Ambient, start: bool) -> Encoded:
        leaf = self._leaf(expr, start)
        if expr.name in ALWAYS and expr.name != "phase":
            self._axioms.append(leaf.value >= 0)
        if expr.name in self.given:
            given = rules.Constant(plain(expr.type), expr.span, self.given[expr.name])
            self._axioms.append(leaf.value == self.sorts.constant(given))
        if expr.name in ALWAYS or expr.name in self.given:
            return self._certain(expr, leaf)
        return leaf

    def _feature(self, expr: rules.Feature, start: bool) -> Encoded:
        if expr.name == "finite" and plain(expr.tensor.type) in (types.INT, types.FLOAT):
            inner = self.encode(expr.tensor, start)
            return Encoded(inner.known, inner.absent, self.numbers.finite(inner.value))
        return self._read_from(expr, start, expr.tensor)

    def _present(self, expr: rules.Present, start: bool) -> Encoded:
        inner = self.encode(expr.value, start)
        return Encoded(z3.Or(inner.known, inner.absent), self._no, inner.known)

    # --- operators ------------------------------------------------------------------------------

    def _missing_first(self, found: Sequence[Encoded]) -> tuple[z3.BoolRef, z3.BoolRef]:
        """Known if all are; absent if the first that is missing is absent."""
        doubtful = [each for each in found if each.known is not self._yes]
        known = self._all([each.known for each in doubtful])
        return known, self._first_absent(doubtful)

    def _first_absent(self, found: Sequence[Encoded]) -> z3.BoolRef:
        """The first that is missing is absent: of each, it is, or it is known and the next ones decide."""
        first = self._no
        for place, each in enumerate(reversed(found)):
            first = z3.Or(each.absent, z3.And(each.known, first)) if place else each.absent
        return first

    def _all(self, items: Sequence[z3.BoolRef]) -> z3.BoolRef:
        if len(items) < 2:
            return items[0] if items else self._yes
        return z3.And(*items)

    def _any(self, items: Sequence[z3.BoolRef]) -> z3.BoolRef:
        if len(items) < 2:
            return items[0] if items else self._no
        return z3.Or(*items)

    def _not(self, expr: rules.Not, start: bool) -> Encoded:
        inner = self.encode(expr.value, start)
        return Encoded(inner.known, inner.absent, z3.Not(inner.value))

    def _joined(self, found: Sequence[Encoded], decides: bool) -> Encoded:
        """Kleene's and (`decides` false) or or: one value decides, else all must be known."""
        deciding = self._any([each.true if decides else each.false for each in found])
        value = deciding if decides else z3.Not(deciding)
        doubtful = [each for each in found if each.known is not self._yes]
        if not doubtful:
            return Encoded(self._yes, self._no, value)
        known = z3.Or(deciding, self._all([each.known for each in doubtful]))
        absent = z3.And(z3.Not(known), self._first_absent(doubtful))
        return Encoded(known, absent, value)

    def _and(self, expr: rules.And, start: bool) -> Encoded:
        return self._joined([self.encode(item, start) for item in expr.items], False)

    def _or(self, expr: rules.Or, start: bool) -> Encoded:
        return self._joined([self.encode(item, start) for item in expr.items], True)

    def _implies(self, expr: rules.Implies, start: bool) -> Encoded:
        left, right = self.encode(expr.left, start), self.encode(expr.right, start)
        return self._joined([Encoded(left.known, left.absent, z3.Not(left.value)), right], True)

    def _compare(self, expr: rules.Compare, start: bool) -> Encoded:
        if expr.op == "!=":
            equal = self.encode(
                rules.Compare(expr.type, expr.span, "==", expr.left, expr.right), start
            )
            return Encoded(equal.known, equal.absent, z3.Not(equal.value))
        left, right = self.encode(expr.left, start), self.encode(expr.right, start)
        value = self._compared(expr, left, right)
        if value is None:
            return self._read_from(expr, start, expr.left, expr.right)
        known, absent = self._missing_first((left, right))
        return Encoded(known, absent, value)

    def _compared(self, expr: rules.Compare, left: Encoded, right: Encoded) -> z3.BoolRef | None:
        """The truth of a comparison of known values; None for values that z3 treats as opaque."""
        kinds = (plain(expr.left.type), plain(expr.right.type))
        if all(kind in (types.INT, types.FLOAT) for kind in kinds):
            if _may_be_no_int(expr):
                return None
            return self.numbers.compare(expr, left.value, right.value)
        sorts = {left.value.sort(), right.value.sort()}
        plain_sorts = (self.sorts.bool, self.sorts.text, self.sorts.thing)
        if expr.op == "==" and len(sorts) == 1 and sorts <= {*plain_sorts}:
            return left.value == right.value
        return None

    def _member(self, expr: rules.Member, start: bool) -> Encoded:
        """In a list of constants and names of the context it is equality to one of them."""
        listed = expr.collection
        simple = self.sorts.of(expr.item.type) != self.sorts.opaque
        if isinstance(listed, rules.ListDisplay) and listed.items and simple:
            equal = [
                rules.Compare(types.BOOL, expr.span, "==", expr.item, item) for item in listed.items
            ]
            if all(isinstance(item, rules.Constant | rules.Ambient) for item in listed.items):
                return self._joined([self.encode(each, start) for each in equal], True)
        return self._read_from(expr, start, expr.item, expr.collection)

    def _same_object(self, expr: rules.SameObject, start: bool) -> Encoded:
        left, right = self.encode(expr.left, start), self.encode(expr.right, start)
        if left.value.sort() == right.value.sort() == self.sorts.thing:
            known, absent = self._missing_first((left, right))
            return Encoded(known, absent, left.value == right.value)
        return self._read_from(expr, start, expr.left, expr.right)

    def _arithmetic(self, expr: rules.Arithmetic, start: bool) -> Encoded:
        left, right = self.encode(expr.left, start), self.encode(expr.right, start)
        kinds = (plain(expr.left.type), plain(expr.right.type))
        if not all(kind in (types.INT, types.FLOAT) for kind in kinds):
            return self._read_from(expr, start, expr.left, expr.right)
        known, absent = self._missing_first((left, right))
        found = Encoded(known, absent, self.numbers.reckon(expr, left.value, right.value))
        self.reckoned[expr, start] = found
        return found

    def _negate(self, expr: rules.Negate, start: bool) -> Encoded:
        inner = self.encode(expr.value, start)
        if inner.value.sort() == self.sorts.opaque:
            return self._read_from(expr, start, expr.value)
        return Encoded(inner.known, inner.absent, self.numbers.negated(inner.value))

    def _function(self, expr: rules.Function, start: bool) -> Encoded:
        if expr.name == "isinstance" and isinstance(expr.arguments[1], rules.ListDisplay):
            value, classes = expr.arguments
            assert isinstance(classes, rules.ListDisplay)
            each = [
                rules.Function(expr.type, expr.span, "isinstance", (value, cls))
                for cls in classes.items
            ]
            if each:
                return self._joined([self.encode(one, start) for one in each], True)
        if expr.name == "ulp":
            constant = self.numbers.constant(expr)
            if constant is not None:
                return Encoded(self._yes, self._no, constant)
        function = FUNCTIONS[expr.name].z3
        if function is not None and not _may_be_no_int(expr):
            found = [self.encode(argument, start) for argument in expr.arguments]
            value = function(z3, *(each.value for each in found))
            if value is not None:
                known, absent = self._missing_first(found)
                return Encoded(known, absent, value)
        return self._read_from(expr, start, *expr.arguments)

    def _old(self, expr: rules.Old, start: bool) -> Encoded:
        return self.encode(expr.value, True)

    def _field(self, expr: rules.Field, start: bool) -> Encoded:
        return self._read_from(expr, start, expr.base)

    def _index(self, expr: rules.Index, start: bool) -> Encoded:
        return self._read_from(expr, start, expr.base, expr.index)


def _may_be_no_int(expr: Expr) -> bool:
    """True if the expression rounds a float. It then has the type int, and is NaN or infinite if
    the float is.
    """
    return any(
        isinstance(part, rules.Function)
        and FUNCTIONS[part.name].result == "int"
        and plain(part.arguments[0].type) != types.INT
        for part in expressions(expr)
    )


def moves(expr: object) -> bool:
    """True if an expression may differ between the window's start and its end."""
    if isinstance(expr, rules.Constant | rules.Variable | rules.WindowCall):
        return False
    if isinstance(expr, rules.Field):
        return not isinstance(expr.base, rules.WindowCall)
    return True


_MEANING: Mapping[type, Callable[[Encoder, Any, bool], Encoded]] = {
    rules.Constant: Encoder._constant,
    rules.Variable: Encoder._variable,
    rules.WindowCall: Encoder._variable,
    rules.Ambient: Encoder._ambient,
    rules.Field: Encoder._field,
    rules.Feature: Encoder._feature,
    rules.Index: Encoder._index,
    rules.Fold: Encoder._free,
    rules.Old: Encoder._old,
    rules.Present: Encoder._present,
    rules.Compare: Encoder._compare,
    rules.Member: Encoder._member,
    rules.SameObject: Encoder._same_object,
    rules.Arithmetic: Encoder._arithmetic,
    rules.Negate: Encoder._negate,
    rules.Not: Encoder._not,
    rules.And: Encoder._and,
    rules.Or: Encoder._or,
    rules.Implies: Encoder._implies,
    rules.Function: Encoder._function,
}

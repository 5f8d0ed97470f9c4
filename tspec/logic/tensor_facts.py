"""What holds of the features of tensors in every job: the range of each, and how those of one tensor relate.

Each relation is written once, over an algebra: z3 gets it as an axiom, and situations are judged by it.
An empty tensor has the norm 0 and is finite; its extremes are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import z3

from tspec.builtin.features import FEATURES
from tspec.builtin.folds import FOLDS
from tspec.logic.sorts import Sorts
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.types import plain

Bounds = Literal["size", "count", "fraction"]
_ROUND_OFF = 1e-6
"""How far sums of many elements may be off, of their size."""
TensorRead = tuple[Expr, bool]
"""The tensor of a feature, and whether it is read at the window before."""


def bounds_of(expr: Expr) -> Bounds | None:
    """The range of a number that is a feature, or is computed of features, at any time; None if it has none."""
    if isinstance(expr, rules.Old | rules.Previous | rules.First):
        return bounds_of(expr.value)
    if isinstance(expr, rules.Fold):
        fold = FOLDS[expr.name]
        if fold.takes != "numbers" or fold.bounds is None:
            return "size" if fold.bounds == "size" else None
        inner = bounds_of(expr.value)
        if fold.bounds == "within":
            return inner
        return "size" if inner is not None or fold.bounds == "size" else None
    if isinstance(expr, rules.Feature) and expr.per is None and expr.dim is None:
        return FEATURES[expr.name].bounds
    return None


def is_in_range(expr: Expr, value: float) -> bool:
    """True if a read can have this value, by its bounds alone."""
    bounds = bounds_of(expr)
    if bounds is None:
        return True
    if bounds == "fraction":
        return 0 <= value <= 1
    return value >= 0 or (bounds == "size" and math.isnan(value))


def feature_of_tensor(expr: Expr) -> tuple[TensorRead, str] | None:
    """The tensor and the name of a feature of all of it, now or at the window before; None of other reads.

    Of a list of tensors some features may be known and others not, so lists are left out.
    """
    before = isinstance(expr, rules.Previous)
    feature = expr.value if isinstance(expr, rules.Previous) else expr
    if not isinstance(feature, rules.Feature) or feature.per is not None or feature.dim is not None:
        return None
    if plain(feature.tensor.type) != types.TENSOR:
        return None
    return (feature.tensor, before), feature.name


class Algebra(Protocol):
    """Numbers and truths of one kind: of z3, or of Python."""

    def is_nan(self, value: Any) -> Any: ...
    def is_finite(self, value: Any) -> Any: ...
    def at_most(self, small: Any, large: Any) -> Any: ...
    def magnitude(self, value: Any) -> Any: ...
    def number(self, value: float) -> Any: ...
    def either(self, *truths: Any) -> Any: ...
    def both(self, *truths: Any) -> Any: ...
    def negated(self, truth: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class FeatureRelation:
    """What holds between features of one tensor.

    `exact`: it holds to the bit, so that z3 may rely on it. Others hold up to round-off and underflow.
    """

    names: tuple[str, ...]
    holds: Callable[..., Any]
    """Of an algebra and the features, in the order of `names`."""
    exact: bool = True


def _implies(o: Algebra, condition: Any, conclusion: Any) -> Any:
    return o.either(o.negated(condition), conclusion)


def _same_nan(o: Algebra, x: Any, y: Any) -> Any:
    return o.both(_implies(o, o.is_nan(x), o.is_nan(y)), _implies(o, o.is_nan(y), o.is_nan(x)))


def _in_order(o: Algebra, small: Any, large: Any) -> Any:
    return o.either(o.is_nan(small), o.is_nan(large), o.at_most(small, large))


def _extremes(o: Algebra, least: Any, most: Any) -> Any:
    return o.both(_same_nan(o, least, most), _in_order(o, least, most))


def _magnitude(o: Algebra, extreme: Any, absmax: Any) -> Any:
    return o.both(_same_nan(o, extreme, absmax), _in_order(o, o.magnitude(extreme), absmax))


def _largest(o: Algebra, least: Any, most: Any, absmax: Any) -> Any:
    """The largest magnitude is that of one of the extremes."""
    return o.either(
        o.is_nan(absmax),
        o.at_most(absmax, o.magnitude(least)),
        o.at_most(absmax, o.magnitude(most)),
    )


def _finite_norm(o: Algebra, finite: Any, norm: Any) -> Any:
    """Finite elements may have an infinite norm, whose squares overflow."""
    return o.both(
        _implies(o, o.is_finite(norm), finite), _implies(o, finite, o.negated(o.is_nan(norm)))
    )


def _finite_extreme(o: Algebra, finite: Any, extreme: Any) -> Any:
    return _implies(o, finite, o.either(o.is_nan(extreme), o.is_finite(extreme)))


def _finite_absmax(o: Algebra, finite: Any, absmax: Any) -> Any:
    return o.both(_finite_extreme(o, finite, absmax), _implies(o, o.is_finite(absmax), finite))


def _finite_extremes(o: Algebra, finite: Any, least: Any, most: Any) -> Any:
    return _implies(o, o.both(o.is_finite(least), o.is_finite(most)), finite)


def _no_nans(o: Algebra, finite: Any, nans: Any) -> Any:
    return _implies(o, finite, o.at_most(nans, o.number(0)))


def _nan_of_nans(o: Algebra, nans: Any, value: Any) -> Any:
    return o.either(o.at_most(nans, o.number(0)), o.is_nan(value))


def _zero_norm(o: Algebra, absmax: Any, norm: Any) -> Any:
    """Zeros have the norm zero, and so has the empty tensor."""
    zero = o.number(0)
    return o.both(
        _implies(o, o.at_most(absmax, zero), o.at_most(norm, zero)),
        _implies(o, o.is_nan(absmax), o.either(o.is_nan(norm), o.at_most(norm, zero))),
        _implies(o, o.is_nan(norm), o.is_nan(absmax)),
    )


def _between(o: Algebra, mean: Any, least: Any, most: Any) -> Any:
    return o.both(_in_order(o, least, mean), _in_order(o, mean, most))


def _no_spread(o: Algebra, std: Any, least: Any, most: Any) -> Any:
    """Elements that are alike have the deviation zero, and others have not."""
    alike, zero = o.at_most(most, least), o.number(0)
    no_spread = _implies(o, alike, o.at_most(std, _ROUND_OFF * o.magnitude(most)))
    return o.either(
        o.is_nan(std), o.is_nan(least), o.both(no_spread, _implies(o, o.at_most(std, zero), alike))
    )


def _zero_elements(o: Algebra, zeros: Any, least: Any, most: Any) -> Any:
    """An element that is zero lies between the extremes."""
    zero = o.number(0)
    return o.either(
        o.at_most(zeros, zero),
        o.both(_in_order(o, least, zero), _in_order(o, zero, most)),
    )


def _all_zero(o: Algebra, zeros: Any, size: Any) -> Any:
    zero, one = o.number(0), o.number(1)
    return _implies(o, o.at_most(one, zeros), o.at_most(size, zero))


def _some_not_zero(o: Algebra, zeros: Any, norm: Any) -> Any:
    zero, one = o.number(0), o.number(1)
    return _implies(o, o.at_most(norm, zero), o.at_most(one, zeros))


RELATIONS: tuple[FeatureRelation, ...] = (
    FeatureRelation(("min", "max"), _extremes),
    FeatureRelation(("min", "absmax"), _magnitude),
    FeatureRelation(("max", "absmax"), _magnitude),
    FeatureRelation(("min", "max", "absmax"), _largest),
    FeatureRelation(("finite", "norm"), _finite_norm),
    FeatureRelation(("finite", "min"), _finite_extreme),
    FeatureRelation(("finite", "max"), _finite_extreme),
    FeatureRelation(("finite", "absmax"), _finite_absmax),
    FeatureRelation(("finite", "min", "max"), _finite_extremes),
    FeatureRelation(("finite", "nans"), _no_nans),
    *(
        FeatureRelation(("nans", name), _nan_of_nans)
        for name in ("norm", "min", "max", "absmax", "mean", "std", "sum")
    ),
    FeatureRelation(("absmax", "norm"), _zero_norm),
    FeatureRelation(("zeros", "min", "max"), _zero_elements),
    FeatureRelation(("zeros", "norm"), _all_zero),
    FeatureRelation(("zeros", "absmax"), _all_zero),
    FeatureRelation(("zeros", "norm"), _some_not_zero, exact=False),
    FeatureRelation(("zeros", "absmax"), _some_not_zero, exact=False),
    FeatureRelation(("absmax", "norm"), _in_order, exact=False),
    FeatureRelation(("mean", "min", "max"), _between, exact=False),
    FeatureRelation(("min", "mean"), _in_order, exact=False),
    FeatureRelation(("mean", "max"), _in_order, exact=False),
    FeatureRelation(("std", "min", "max"), _no_spread, exact=False),
)


OF_ELEMENTS = frozenset(name for relation in RELATIONS for name in relation.names)
"""Features of the elements: a tensor has all of them, or none where it cannot be read."""


class InZ3:
    """Features as z3 knows them: float64 and ints."""

    def __init__(self, sorts: Sorts) -> None:
        self._sorts = sorts

    def is_nan(self, value: Any) -> Any:
        return z3.fpIsNaN(value, self._sorts.context)

    def is_finite(self, value: Any) -> Any:
        return z3.Not(z3.Or(self.is_nan(value), z3.fpIsInf(value, self._sorts.context)))

    def at_most(self, small: Any, large: Any) -> Any:
        if z3.is_int(small) or z3.is_int(large):
            return small <= large
        return z3.fpLEQ(self._float(small), self._float(large), self._sorts.context)

    def magnitude(self, value: Any) -> Any:
        return z3.fpAbs(value, self._sorts.context)

    def number(self, value: float) -> Any:
        return value

    def either(self, *truths: Any) -> Any:
        return z3.Or(*truths)

    def both(self, *truths: Any) -> Any:
        return z3.And(*truths)

    def negated(self, truth: Any) -> Any:
        return z3.Not(truth)

    def _float(self, value: Any) -> Any:
        return self._sorts.number(float(value)) if isinstance(value, int | float) else value


class InPython:
    """Features as numbers and truths of Python. `round_off`: how much too small a number may be, of its size."""

    def __init__(self, round_off: float) -> None:
        self._round_off = round_off

    def is_nan(self, value: float) -> bool:
        return math.isnan(value)

    def is_finite(self, value: float) -> bool:
        return math.isfinite(value)

    def at_most(self, small: float, large: float) -> bool:
        return small <= large or small - large <= self._round_off * abs(large)

    def magnitude(self, value: float) -> float:
        return abs(value)

    def number(self, value: float) -> float:
        return value

    def either(self, *truths: bool) -> bool:
        return any(truths)

    def both(self, *truths: bool) -> bool:
        return all(truths)

    def negated(self, truth: bool) -> bool:
        return not truth


def related(
    name: str, features: Mapping[str, Any]
) -> Iterator[tuple[FeatureRelation, tuple[Any, ...]]]:
    """The relations of a feature with others of its tensor, with the values of their features."""
    for relation in RELATIONS:
        if name in relation.names and all(each in features for each in relation.names):
            yield relation, tuple(features[each] for each in relation.names)


def are_possible(features: Mapping[str, float | bool]) -> bool:
    """True if one tensor can have these features."""
    exact, rounded = InPython(0.0), InPython(_ROUND_OFF)
    return all(
        relation.holds(
            exact if relation.exact else rounded, *(features[name] for name in relation.names)
        )
        for relation in RELATIONS
        if all(name in features for name in relation.names)
    )

"""The folds of the language: many values made one, of a list, of the ranks of a group, or over time.

A row of `FOLDS` is all that a fold of numbers needs: the type checker, `tspec why`, z3, the
witnesses of `tspec diff`, DuckDB and the hooks read it. A fold of other values (`same`, `any`,
`count`) may be decided while some values are missing, so each executor has code of its own for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tspec.builtin.examples import EACH_STEP
from tspec.builtin.numbers import NAN, as_float, ratio

Numbers = Sequence[Any]
"""Ints and floats, at least one, in order."""


def _constant(value: Any, count: int) -> list[Any]:
    return [value] * count


def _one_and_zeros(value: Any, count: int) -> list[Any]:
    return [value, *[type(value)(0)] * (count - 1)]


@dataclass(frozen=True, slots=True)
class BuiltinFold:
    """One fold.

    `result`: `number` is an int for ints, else a float. `words`: its name in `tspec why` before the
    noun; None if it forms a clause. `bounds`: `size` is never negative, `within` lies between the
    least and the greatest value, `sum` is not negative if no value is. `longer`: whether it grows
    or shrinks when more values are added. `mutant`: the fold that `tspec mutate` puts in its place.
    `rounded`: `==` compares rounded numbers.
    """

    name: str
    meaning: str = field(kw_only=True)
    """Its meaning, in one sentence of the vocabulary."""
    example: str = field(kw_only=True)
    """A rule's clauses in which it stands."""
    takes: Literal["values", "conditions", "numbers"]
    result: Literal["bool", "int", "float", "number"]
    words: str | None = None
    bounds: Literal["size", "within", "sum"] | None = None
    longer: Literal["grows", "shrinks"] | None = None
    mutant: str | None = None
    rounded: bool = False
    of: Callable[[Numbers], Any] | None = None
    """The fold of numbers, none of them missing."""
    sql: str = ""
    """The fold in DuckDB; NULL of an empty list. `{floats}` is a list of DOUBLE, `{values}` the same list as
    ints if they are ints, and `{sum}`, `{min}`, … are other folds of it."""
    sql_of_ints: str = ""
    """The same where all values are ints, if it differs."""
    numbers: Callable[[Any, int], list[Any]] = _constant
    """Numbers whose fold is a given value: (value, count) -> that many numbers."""

    @property
    def decided_early(self) -> bool:
        """True if one or two known values may decide the fold, whatever the others are."""
        return self.result == "bool"


def _sum(values: Numbers) -> Any:
    if all(value.__class__ is int for value in values):
        return sum(values)
    total = 0.0
    for value in values:
        total += as_float(value)
    return total


def _mean(values: Numbers) -> float:
    return ratio(as_float(_sum(values)), float(len(values)))


def _std(values: Numbers) -> float:
    middle = _mean(values)
    total = 0.0
    for value in values:
        difference = as_float(value) - middle
        total += difference * difference
    return math.sqrt(total / len(values))


def _min(values: Numbers) -> Any:
    return NAN if any(value != value for value in values) else min(values)


def _max(values: Numbers) -> Any:
    return NAN if any(value != value for value in values) else max(values)


def _median(values: Numbers) -> float:
    ordered = sorted(map(as_float, values))
    if any(value != value for value in ordered):
        return NAN
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    # Sorted, 0.0 and -0.0 are equal: a zero is 0.0.
    return (low if len(ordered) % 2 else (low + high) / 2.0) + 0.0


def _spread(values: Numbers) -> Any:
    return _max(values) - _min(values)


_ALL: Sequence[BuiltinFold] = (
    BuiltinFold(
        "same", "values", "bool", mutant="distinct",
        meaning="Whether no two values differ in their bits.",
        example="for p in parameters across dp after optimizer.step expect same(p.data)",
    ),
    BuiltinFold(
        "distinct", "values", "bool", mutant="same",
        meaning="Whether no two values are the same.",
        example="across dp after fetch expect distinct(digest(fetch.tensors))",
    ),
    BuiltinFold(
        "spread", "numbers", "number", "the spread of", "size", "grows",
        of=_spread, sql="({max}) - ({min})", numbers=_one_and_zeros,
        meaning="The largest value less the smallest.",
        example="across dp each step expect spread(loss) < 1",
    ),
    BuiltinFold(
        "min", "numbers", "number", "the smallest of", "within", "shrinks", "max",
        of=_min, sql_of_ints="list_min({values})",
        sql="CASE WHEN len({floats}) > 0 THEN list_reduce({floats}, lambda a, b: f_min(a, b)) END",
        meaning="The smallest value.",
        example=f"{EACH_STEP} min(loss, over: 20 steps) < 10",
    ),
    BuiltinFold(
        "max", "numbers", "number", "the largest of", "within", "grows", "min",
        of=_max, sql_of_ints="list_max({values})",
        sql="CASE WHEN len({floats}) > 0 THEN list_reduce({floats}, lambda a, b: f_max(a, b)) END",
        meaning="The largest value.",
        example=f"{EACH_STEP} loss <= 3 * max(previous(loss), over: 20 steps)",
    ),
    BuiltinFold(
        "sum", "numbers", "number", "the sum of", "sum", rounded=True,
        of=_sum, sql_of_ints="coalesce(list_sum({values}), 0)::BIGINT",
        sql="list_reduce({floats}, lambda a, b: a + b, 0.0::DOUBLE)",
        numbers=_one_and_zeros,
        meaning="The sum of the values.",
        example=f"{EACH_STEP} sum([loss, 1]) > 0",
    ),
    BuiltinFold(
        "mean", "numbers", "float", "the mean of", "within", rounded=True,
        of=_mean,
        sql="CASE WHEN len({floats}) > 0 THEN {sum} / len({floats}) END",
        # Ints are added exactly, whatever their size.
        sql_of_ints="CASE WHEN len({values}) > 0 THEN list_sum({values})::DOUBLE / len({values}) END",
        meaning="The mean of the values.",
        example=f"{EACH_STEP} mean(loss, over: 20 steps) < 10",
    ),
    BuiltinFold(
        "std", "numbers", "float", "the standard deviation of", "size", rounded=True,
        of=_std,
        sql="CASE WHEN len({values}) > 0 THEN sqrt(list_reduce(list_transform({floats}, "
        "lambda x: (x - {mean}) * (x - {mean})), lambda a, b: a + b, 0.0::DOUBLE) / len({values})) END",
        numbers=lambda value, count: [0.0 if n % 2 else 2.0 * value for n in range(count)],
        meaning="The population's standard deviation.",
        example=f"{EACH_STEP} std(loss, over: 20 steps) < 10",
    ),
    BuiltinFold(
        "median", "numbers", "float", "the median of", "within",
        of=_median,
        # NaN is sorted last.
        sql="list_transform(list_transform([list_sort({floats})], lambda s: CASE "
        "WHEN isnan(s[len(s)]) THEN 'nan'::DOUBLE WHEN len(s) % 2 = 1 THEN s[len(s) // 2 + 1] "
        "ELSE (s[len(s) // 2] + s[len(s) // 2 + 1]) / 2 END), "
        "lambda m: CASE WHEN m = 0 THEN 0.0::DOUBLE ELSE m END)[1]",
        meaning="The middle value in order.",
        example=f"{EACH_STEP} loss <= 3 * median(previous(loss), over: 20 steps)",
    ),
    BuiltinFold(
        "count", "values", "int", "the number of", "size", "grows",
        meaning="The number of values; of conditions the number that is true.",
        example=f"{EACH_STEP} count(calls(backward)) == 1",
    ),
    BuiltinFold(
        "any", "conditions", "bool", mutant="all",
        meaning="Whether some condition is true.",
        example=f"{EACH_STEP} any(loss < 1, over: 20 steps)",
    ),
    BuiltinFold(
        "all", "conditions", "bool", mutant="any",
        meaning="Whether all conditions are true.",
        example=f"{EACH_STEP} all(loss < 10, over: 20 steps)",
    ),
)  # fmt: skip

FOLDS: Mapping[str, BuiltinFold] = {fold.name: fold for fold in _ALL}
"""The folds by name, in the order of the pages."""
OF_NUMBERS = tuple(fold.name for fold in _ALL if fold.takes == "numbers")
"""The folds of numbers: missing where a value is, and where there is none but for `sum`."""
DECIDED_EARLY = frozenset(fold.name for fold in _ALL if fold.decided_early)
"""Folds that one or two known values may decide."""

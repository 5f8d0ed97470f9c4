"""The functions of the language: total functions of known values, missing where an argument is.

A row of `FUNCTIONS` is all that a function of numbers and text needs: the type checker, `tspec why`,
z3, the witnesses of `tspec diff`, DuckDB and the hooks read it. `isinstance` reads the class of its
argument too, which each executor does itself.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tspec.builtin.examples import EACH_PARAMETER, EACH_STEP
from tspec.builtin.numbers import INF, NAN, as_float

ULPS: Mapping[str, float] = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "float8_e5m2fnuz": 2.0**-2,
}
"""The gap between 1 and the next number of each dtype."""


@dataclass(frozen=True, slots=True)
class BuiltinFunction:
    """One function.

    `takes`: the type of each argument; those in `named` are written `name: value`, and come last.
    `result`: `number` is an int for ints, else a float; an int may be NaN or infinite, which
    rounding leaves unchanged. `maps`: for a list as first argument it gives the list of results.
    `phrase`: the text in `tspec why` for arguments `{0}`, `{1}`, with a verb between them if the
    result is a bool. `size`: never negative. `rounded`: `==` compares rounded numbers.
    """

    name: str
    meaning: str = field(kw_only=True)
    """Its meaning, in one sentence of the vocabulary."""
    example: str = field(kw_only=True)
    """A rule's clauses in which it stands."""
    takes: tuple[Literal["number", "text", "dtype", "class"], ...]
    result: Literal["bool", "int", "float", "number", "string"]
    phrase: str | None = None
    named: tuple[str, ...] = ()
    maps: bool = False
    size: bool = False
    rounded: bool = False
    of: Callable[..., Any] | None = None
    """The value for known arguments that fit; None where there is none."""
    sql: str | None = None
    """DuckDB's, of `{0}`, `{1}`: numbers are DOUBLE; None: DuckDB calls `of`."""
    sql_of_ints: str | None = None
    """The same where all numbers are ints, if it differs: a bool or an int."""
    z3: Callable[..., Any] | None = None
    """z3's, of the module and the values of the arguments; None where z3 does not look into it."""

    @property
    def bounds_a_number(self) -> bool:
        """True if z3 has a formula for the function, and its argument is a number."""
        return self.z3 is not None and self.takes[0] == "number"


def _log(x: float) -> float:
    if x == 0:
        return -INF
    return math.log(x) if x > 0 else NAN


def _exp(x: float) -> float:
    try:
        return math.exp(as_float(x))
    except OverflowError:
        return INF


def _whole(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    """Rounding gives an int; NaN and infinities have none, and stay."""
    return lambda x: function(x) if math.isfinite(x) else x


def _abs_in_z3(z3: Any, x: Any) -> Any:
    if z3.is_fp(x):
        return z3.fpAbs(x, x.ctx)
    return z3.If(x < 0, -x, x) if z3.is_int(x) else None


def _divides_in_z3(z3: Any, x: Any, by: Any) -> Any:
    """Divisibility of an int by a constant."""
    if not (z3.is_int(x) and z3.is_int(by)):
        return None
    by = z3.simplify(by)
    if not z3.is_int_value(by) or by.as_long() == 0:
        return None
    return x % abs(by.as_long()) == 0


def _of_text_in_z3(function: Callable[..., Any]) -> Callable[..., Any]:
    def of(z3: Any, *texts: Any) -> Any:
        return function(z3, *texts) if all(map(z3.is_string, texts)) else None

    return of


_ALL: Sequence[BuiltinFunction] = (
    BuiltinFunction(
        "abs", ("number",), "number", "the size of {0}", size=True, of=abs, sql="abs({0})",
        sql_of_ints="abs({0})", z3=_abs_in_z3,
        meaning="The absolute value.",
        example=f"{EACH_STEP} abs(loss) < 10",
    ),
    BuiltinFunction(
        "sqrt", ("number",), "float", "the square root of {0}", size=True, rounded=True,
        of=lambda x: NAN if x < 0 else math.sqrt(x), sql="sqrt({0})",
        meaning="The square root; NaN of a negative number.",
        example=f"{EACH_STEP} sqrt(loss) < 10",
    ),
    BuiltinFunction(
        "log", ("number",), "float", rounded=True, of=_log, sql="ln({0})",
        meaning="The natural logarithm.",
        example=f"{EACH_STEP} loss <= 2 * log(1000)",
    ),
    BuiltinFunction(
        "exp", ("number",), "float", rounded=True, of=_exp, sql="exp({0})",
        meaning="The exponential function.",
        example=f"{EACH_STEP} exp(loss) < 1e6",
    ),
    # An int has no -0.0.
    BuiltinFunction(
        "ceil", ("number",), "int", of=_whole(math.ceil), sql="ceil({0}) + 0.0::DOUBLE",
        sql_of_ints="{0}",
        meaning="The next int that is not smaller.",
        example=f"{EACH_STEP} ceil(loss) < 10",
    ),
    BuiltinFunction(
        "floor", ("number",), "int", of=_whole(math.floor), sql="floor({0}) + 0.0::DOUBLE",
        sql_of_ints="{0}",
        meaning="The next int that is not larger.",
        example=f"{EACH_STEP} floor(loss) < 10",
    ),
    BuiltinFunction(
        "round", ("number",), "int", of=_whole(round), sql="round_even({0}, 0) + 0.0::DOUBLE",
        sql_of_ints="{0}",
        meaning="The nearest int, half to even.",
        example=f"{EACH_STEP} round(loss) < 10",
    ),
    BuiltinFunction(
        "ulp", ("dtype",), "float", "the precision of {0}", of=ULPS.get,
        sql="CASE {0} " + " ".join(f"WHEN '{d}' THEN {u!r}::DOUBLE" for d, u in ULPS.items()) + " END",
        meaning="The gap between 1 and the next number of a dtype.",
        example=f"{EACH_STEP} loss > ulp(float32)",
    ),
    BuiltinFunction(
        "endswith", ("text", "text"), "bool", "ends with", of=str.endswith, sql="suffix({0}, {1})",
        z3=_of_text_in_z3(lambda z3, text, end: z3.SuffixOf(end, text)),
        meaning="Whether a string ends with another.",
        example='for p in parameters after optimizer.step when endswith(p.name, "bias") expect finite(p.data)',
    ),
    BuiltinFunction(
        "startswith", ("text", "text"), "bool", "begins with", of=str.startswith,
        sql="prefix({0}, {1})", z3=_of_text_in_z3(lambda z3, text, start: z3.PrefixOf(start, text)),
        meaning="Whether a string begins with another.",
        example='for p in parameters after optimizer.step when startswith(p.name, "head") expect finite(p.data)',
    ),
    # The patterns are Python's, which DuckDB's regular expressions are not.
    BuiltinFunction(
        "matches", ("text", "text"), "bool", "matches",
        of=lambda text, pattern: re.search(pattern, text) is not None,
        meaning="Whether a regular expression, as in Python, is found in a string.",
        example='for p in parameters after optimizer.step when matches(p.name, "[0-9]+") expect finite(p.data)',
    ),
    BuiltinFunction(
        "join", ("text", "text"), "string", "{0} followed by {1}", of=operator.add,
        sql="{0} || {1}", z3=_of_text_in_z3(lambda z3, first, second: z3.Concat(first, second)),
        meaning="A string followed by another.",
        example='for p in parameters after save expect join("model/", p.name) in save.names',
    ),
    BuiltinFunction(
        "divisible", ("number", "number"), "bool", "is divisible by", ("by",), maps=True,
        of=lambda x, by: by != 0 and math.isfinite(x) and x % by == 0,
        sql="CASE WHEN {1} = 0 OR NOT isfinite({0}) OR isnan({1}) THEN false ELSE {0} % {1} = 0 END",
        sql_of_ints="CASE WHEN {1} = 0 THEN false ELSE {0} % {1} = 0 END", z3=_divides_in_z3,
        meaning="Whether a number, or each of a list, leaves no remainder.",
        example=f"{EACH_PARAMETER} divisible(numel(p.data), by: 8)",
    ),
    BuiltinFunction(
        "isinstance", ("class", "class"), "bool", "is a",
        meaning="Whether a module or another object is of a class, or of one of a list.",
        example="for m in modules each step when isinstance(m, torch.nn.Conv2d) expect m.training",
    ),
)  # fmt: skip

FUNCTIONS: Mapping[str, BuiltinFunction] = {function.name: function for function in _ALL}
"""The functions by name, in the order of the pages."""

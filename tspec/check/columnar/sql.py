"""SQL text: literals, and macros for the rules of IEEE and Kleene."""

from __future__ import annotations

import math

from tspec import reasons
from tspec.check.columnar.shapes import REASONS, Unsupported

_NUMBERS = " ".join(f"WHEN '{name}' THEN {number}" for number, name in REASONS.items())
"""From the text of a reason to its number, as the branches of a CASE."""

MACROS = (
    # DuckDB takes NaN for equal to itself and for the greatest number; IEEE does not.
    "f_eq(a, b) AS a = b AND NOT isnan(a)",
    "f_lt(a, b) AS a < b AND NOT isnan(b)",
    "f_le(a, b) AS a <= b AND NOT isnan(b)",
    "f_min(a, b) AS CASE WHEN isnan(a) OR isnan(b) THEN 'nan'::DOUBLE WHEN b < a THEN b ELSE a END",
    "f_max(a, b) AS CASE WHEN isnan(a) OR isnan(b) THEN 'nan'::DOUBLE WHEN b > a THEN b ELSE a END",
    # Numbers that JSON has no digits for are `{"float": bits}`.
    """j_float(j) AS CASE WHEN json_type(j) = 'OBJECT'
        THEN ('0x' || (j ->> '$.float'))::UBIGINT::BIT::DOUBLE ELSE try_cast(j AS DOUBLE) END""",
    "j_subject(j) AS hash((j ->> '$.ref[0]') || ' ' || (j ->> '$.ref[1]'))",
    f"j_missing(j) AS CASE j ->> '$.missing' {_NUMBERS} END::TINYINT",
    f"reason(t) AS CASE t {_NUMBERS} END::TINYINT",
    "j_at(j, k) AS json_extract(j, '/' || replace(replace(k, '~', '~0'), '/', '~1'))",
    # The sorted entries of a map, which are equal for equal maps in any order of keys.
    "j_pairs(j) AS list_sort(list_transform(json_keys(j), lambda k: k || '=' || j_at(j, k)::VARCHAR))",
    "j_lacks(j) AS len(list_filter(json_keys(j), lambda k: json_exists(j_at(j, k), '$.missing'))) > 0",
    "j_number(j) AS json_type(j) IN ('BIGINT', 'UBIGINT', 'DOUBLE') OR json_exists(j, '$.float')",
    """j_eq(a, b) AS CASE
        WHEN json_exists(a, '$.missing') OR json_exists(b, '$.missing') THEN NULL
        WHEN json_type(a) <> 'DOUBLE' AND json_type(b) <> 'DOUBLE' AND a::VARCHAR = b::VARCHAR
          THEN NOT json_exists(a, '$.float') OR NOT isnan(j_float(a))
        WHEN j_number(a) AND j_number(b) THEN f_eq(j_float(a), j_float(b))
        ELSE json_type(a) = json_type(b) AND a::VARCHAR = b::VARCHAR END""",
    "kleene_all(l) AS CASE WHEN coalesce(list_contains(l, false), false) THEN false "
    "WHEN len(list_filter(l, lambda x: x IS NULL)) > 0 THEN NULL ELSE true END",
    # FNV-1a over 64-bit words, see docs/design/semantics.md.
    """combine_digests(ds) AS (WITH m AS (SELECT list_reduce(
        list_transform(ds, lambda d: (d::BIT::UBIGINT)::UHUGEINT),
        lambda h, d: (xor(h, d) * 1099511628211::UHUGEINT) % 18446744073709551616::UHUGEINT,
        11400714819323198485::UHUGEINT) AS h) SELECT h::UBIGINT::BIT::BIGINT FROM m)""",
)


def text(value: str) -> str:
    """A string literal."""
    if "\0" in value:
        raise Unsupported("a string holds a NUL")
    return "'" + value.replace("'", "''") + "'"


def of_rank(column: str, what: str) -> str:
    """SQL of the text that `tspec.reasons.of_rank` gives for the rank in a column."""
    before, after = reasons.of_rank("\n", what).split("\n")
    return f"{text(before)} || {column} || {text(after)}"


def texts(values: tuple[str, ...] | list[str]) -> str:
    """A parenthesised list of string literals."""
    return "(" + ", ".join(map(text, values)) + ")"


def number(value: float) -> str:
    """A float literal, to the bit (of NaN: the usual one)."""
    if math.isnan(value):
        return "'nan'::DOUBLE"
    return f"'{value!r}'::DOUBLE"


def integer(value: int) -> str:
    """An int literal."""
    if not -(2**63) <= value < 2**63:
        raise Unsupported("an integer is longer than 64 bits")
    return f"({value})::BIGINT"

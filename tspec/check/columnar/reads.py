"""Values that rules read, as tables: one field of the subjects of a kind, or of the calls of some
events.

The type of a column depends on the recorded values, not on the declared type: if all values of a
field are ints, it is a column of ints. These queries cannot express a field whose values have
several types.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tspec.builtin.features import FEATURES
from tspec.check.columnar.facts import Facts
from tspec.check.columnar.shapes import (
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    STRING,
    TENSOR,
    ListShape,
    MapShape,
    Shape,
    SingleShape,
    Unsupported,
    sql_type,
)
from tspec.values import Missing

KNOWN = "known"
"""Wanted of a tensor (or anything) if only its being there counts."""

_SHAPES: dict[str, Shape] = {
    "int": INT, "float": FLOAT, "bool": BOOL, "string": STRING, "shape": ListShape(INT),
}  # fmt: skip
FEATURE_SHAPES: dict[str, Shape] = {
    **{row.name: _SHAPES[row.kind] for row in FEATURES.values()},
    "object": INT,
}
_MISSING = frozenset(each.value for each in Missing)
_PLAIN: dict[str, Shape] = {"bool": BOOL, "int": INT, "float": FLOAT, "string": STRING}
_JSON: dict[str, Shape] = {
    "BOOLEAN": BOOL, "BIGINT": INT, "UBIGINT": INT, "DOUBLE": FLOAT, "float": FLOAT,
    "VARCHAR": STRING,
}  # fmt: skip
_OF_JSON = {
    BOOL: "{j}::BOOLEAN", INT: "{j}::BIGINT", FLOAT: "j_float({j})", STRING: "({j} ->> '$')",
    NOTHING: "NULL::BOOLEAN",
}  # fmt: skip
_KIND = "CASE json_type({j}) WHEN 'OBJECT' THEN json_keys({j})[1] ELSE json_type({j}) END"


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table of recorded values. For subjects: `rank, sid, g, v, m`. For calls: `c, v, m` with
    `side`.

    `side` is 0 for values at the call's begin and 1 for values at its end. `ends` is true if some
    call has values at its end. `once` is true if no subject has several samples on a rank.
    """

    table: str
    shape: Shape
    ends: bool = False
    once: bool = False


@dataclass(frozen=True, slots=True)
class _FieldRows:
    """The rows of one field: `rows` is a query with the raw columns and the `keys`."""

    rows: str
    keys: str
    types: frozenset[tuple[str, bool]]


def of_subjects(facts: Facts, kind: str, field: str, want: str | None) -> ReadTable:
    """A field of the subjects of a kind, at each of its samples."""
    asked = ("subjects", kind, field, want)
    if asked not in facts.cache:
        part = facts.part(("sample", kind, field))
        rows = f"SELECT *, hash(what || ' ' || subject) AS sid FROM {part}"
        types = facts.types.get(("sample", kind, field), frozenset())
        source = _source(facts, _FieldRows(rows, "rank, sid, g", types), want)
        several = f"SELECT 1 FROM {source.table} GROUP BY rank, sid HAVING count(*) > 1 LIMIT 1"
        facts.cache[asked] = replace(source, once=not facts.ask(several))
    source = facts.cache[asked]
    assert isinstance(source, ReadTable)
    return source


def of_calls(facts: Facts, events: Iterable[str], field: str, want: str | None) -> ReadTable:
    """A field of the calls of some events, as their begins and ends say it."""
    named = tuple(sorted(set(events)))
    asked = ("calls", named, field, want)
    if asked not in facts.cache:
        parts: list[str] = []
        types: set[tuple[str, bool]] = set()
        for event in named:
            for tag in ("begin", "end"):
                key = (tag, event, field)
                types.update(facts.types.get(key, ()))
                if key in facts.types:
                    parts.append(_side(facts.part(key), tag))
        if not parts:
            parts.append(_side(facts.part(("begin", "", field)), "begin"))
        rows = " UNION ALL ".join(parts)
        values = _FieldRows(rows, "rank, c, side", frozenset(types))
        ends = any(("end", event, field) in facts.types for event in named)
        facts.cache[asked] = replace(_source(facts, values, want), ends=ends)
    source = facts.cache[asked]
    assert isinstance(source, ReadTable)
    return source


def _side(part: str, tag: str) -> str:
    if tag == "begin":
        return f"SELECT *, g AS c, 0 AS side FROM {part}"
    return f"SELECT p.*, k.c, 1 AS side FROM {part} p JOIN calls k ON k.e = p.g"


def _source(facts: Facts, values: _FieldRows, want: str | None) -> ReadTable:
    top = {kind for kind, item in values.types if not item} - _MISSING
    if "list" in top and top <= {"list", "json"}:
        return _lists(facts, values, want)
    if top == {"json"}:
        return _json(facts, values, want)
    if want == KNOWN:
        query = f"SELECT {values.keys}, true AS v, reason(type) AS m FROM ({values.rows}) WHERE item IS NULL"
        return ReadTable(facts.table(query), BOOL)
    if top & {"list", "json"}:
        raise Unsupported("a field holds lists and plain values")
    value, shape = _plain(facts, values.rows, top, want)
    query = f"SELECT {values.keys}, {value} AS v, reason(type) AS m FROM ({values.rows})"
    return ReadTable(facts.table(_null_if_missing(query)), shape)


def _null_if_missing(query: str) -> str:
    """A value that is NULL is not recorded; one that is missing is NULL."""
    return (
        "SELECT * REPLACE (CASE WHEN m IS NULL THEN v END AS v, "
        f"CASE WHEN m IS NULL AND v IS NULL THEN 2::TINYINT ELSE m END AS m) FROM ({query})"
    )


def _plain(facts: Facts, rows: str, types: set[str], want: str | None) -> tuple[str, Shape]:
    """SQL over the raw columns of a value that is no list, and its shape."""
    if want is not None:
        return _feature(types, want)
    if not types:
        return "NULL::BOOLEAN", NOTHING
    if types == {"tensor"}:
        return "digest", TENSOR
    if types == {"ref"}:
        return "hash(text)", SingleShape("subject", _kind_of(facts, rows))
    if types <= {"int", "float"} and "float" in types:
        return "coalesce(float, int::DOUBLE)", FLOAT
    if len(types) == 1 and (kind := next(iter(types))) in _PLAIN:
        return ("text" if kind == "string" else kind), _PLAIN[kind]
    raise Unsupported(f"a field holds values of several kinds ({', '.join(sorted(types))})")


def _feature(types: set[str], want: str) -> tuple[str, Shape]:
    """SQL of a feature of a tensor. A value that is no tensor has only the feature `finite`."""
    if want == KNOWN:
        return "true", BOOL
    shape = FEATURE_SHAPES[want]
    value = want
    if want == "shape":
        value = "list_transform(shape, lambda it: {'v': it, 'm': NULL::TINYINT})"
    if want == "finite" and types & {"int", "float"}:
        value = "CASE type WHEN 'float' THEN isfinite(float) WHEN 'int' THEN true ELSE finite END"
    return value, shape


def _kind_of(facts: Facts, rows: str) -> str:
    """The kind of all references; empty if they are of several kinds."""
    named = (
        f"SELECT DISTINCT split_part(text, ' ', 1) AS kind, text FROM ({rows}) WHERE type = 'ref'"
    )
    facts.con.execute(
        f"""INSERT INTO subjects SELECT hash(text), kind, substr(text, len(kind) + 2) FROM ({named})
            WHERE hash(text) NOT IN (SELECT sid FROM subjects)"""
    )
    kinds = facts.ask(f"SELECT DISTINCT kind FROM ({named})")
    return str(kinds[0][0]) if len(kinds) == 1 else ""


# --- lists --------------------------------------------------------------------------------------


def _lists(facts: Facts, values: _FieldRows, want: str | None) -> ReadTable:
    """Lists that have a row for each item, beside lists without tensors, which are JSON."""
    items = {kind for kind, item in values.types if item} - _MISSING
    value, shape = _plain(facts, values.rows, items, want)
    top = {kind for kind, item in values.types if not item} - _MISSING
    parts = [
        f"""SELECT {values.keys}, list({{'v': v, 'm': m}} ORDER BY item) AS v, NULL::TINYINT AS m
            FROM ({
            _null_if_missing(
                f"SELECT {values.keys}, item, {value} AS v, reason(type) AS m "
                f"FROM ({values.rows}) WHERE item IS NOT NULL"
            )
        })
            GROUP BY {values.keys}""",
        f"SELECT {values.keys}, NULL, reason(type) FROM ({values.rows}) WHERE item IS NULL "
        "AND reason(type) IS NOT NULL",
    ]
    if "json" in top:
        parts.append(_tensorless(facts, values, want, shape))
    return ReadTable(facts.table(" UNION ALL ".join(parts)), ListShape(shape))


def _tensorless(facts: Facts, values: _FieldRows, want: str | None, shape: Shape) -> str:
    """JSON lists where others hold tensors: of their items no feature is known."""
    rows = f"SELECT * FROM ({values.rows}) WHERE type = 'json'"
    odd = facts.ask(f"SELECT count(*) FROM ({rows}) WHERE json_type(text) <> 'ARRAY'")
    full = facts.ask(f"SELECT count(*) FROM ({rows}) WHERE json_array_length(text) > 0")
    if odd[0][0] or (full[0][0] and (want is None or want == "finite")):
        raise Unsupported("a field holds lists of tensors and others")
    item = f"{{'v': NULL::{sql_type(shape)}, 'm': coalesce(j_missing(j), 2::TINYINT)}}"
    if want == KNOWN:
        item = "{'v': CASE WHEN j_missing(j) IS NULL THEN true END, 'm': j_missing(j)}"
    listed = f"""list_transform(from_json(text, '["JSON"]'), lambda j: {item})"""
    return f"SELECT {values.keys}, {listed}, NULL FROM ({rows})"


def _json(facts: Facts, values: _FieldRows, want: str | None) -> ReadTable:
    """Lists, sets or maps without tensors."""
    rows = f"SELECT * FROM ({values.rows}) WHERE type = 'json'"
    kinds = {
        kind for (kind,) in facts.ask(f"SELECT DISTINCT {_KIND.format(j='text')} FROM ({rows})")
    }
    gone = (
        f"SELECT {values.keys}, NULL AS v, reason(type) AS m FROM ({values.rows}) "
        "WHERE reason(type) IS NOT NULL"
    )
    if kinds == {"map"}:
        held = f"SELECT {values.keys}, (text -> '$.map')::VARCHAR AS v, NULL::TINYINT AS m FROM ({rows})"
        return ReadTable(facts.table(f"{held} UNION ALL {gone}"), MapShape())
    if kinds not in ({"ARRAY"}, {"set"}) and want == KNOWN:
        return ReadTable(
            facts.table(f"SELECT {values.keys}, true AS v, reason(type) AS m FROM ({values.rows})"),
            BOOL,
        )
    if kinds not in ({"ARRAY"}, {"set"}):
        raise Unsupported(f"a field holds values of several kinds ({', '.join(sorted(kinds))})")
    inner = "text" if kinds == {"ARRAY"} else "text -> '$.set'"
    opened = f"""SELECT {values.keys}, from_json({inner}, '["JSON"]') AS js FROM ({rows})"""
    shape = _item_shape(facts, opened)
    if want == KNOWN:
        value, shape = "true", BOOL
    elif want is not None:
        shape = FEATURE_SHAPES[want]
        value = f"NULL::{sql_type(shape)}"
        if want == "finite":
            raise Unsupported("whether numbers of a list are finite is read")
    elif isinstance(shape, SingleShape) and shape.name == "subject":
        value = "j_subject(j)"
    else:
        value = _OF_JSON[shape].format(j="j")  # type: ignore[index]
    item = f"""{{'v': CASE WHEN j_missing(j) IS NULL THEN {value} END,
                'm': coalesce(j_missing(j), CASE WHEN ({value}) IS NULL THEN 2::TINYINT END)}}"""
    listed = f"SELECT {values.keys}, list_transform(js, lambda j: {item}) AS v, NULL::TINYINT AS m FROM ({opened})"
    is_set = kinds == {"set"}
    if is_set:
        listed = _in_order(values, listed, shape)
    return ReadTable(facts.table(f"{listed} UNION ALL {gone}"), ListShape(shape, is_set))


def _item_shape(facts: Facts, opened: str) -> Shape:
    """The shape of the items of JSON lists `js`."""
    listed = f"SELECT unnest(js) AS j FROM ({opened})"
    kinds = {
        kind for (kind,) in facts.ask(f"SELECT DISTINCT {_KIND.format(j='j')} FROM ({listed})")
    }
    kinds.discard("missing")
    if kinds == {"ref"}:
        named = (
            "SELECT DISTINCT j_subject(j) AS sid, j ->> '$.ref[0]' AS kind, j ->> '$.ref[1]' AS name "
            f"FROM ({listed}) WHERE json_type(j) = 'OBJECT' AND json_exists(j, '$.ref')"
        )
        facts.con.execute(
            f"""INSERT INTO subjects SELECT sid, kind, name FROM ({named})
                WHERE sid NOT IN (SELECT sid FROM subjects)"""
        )
        found = facts.ask(f"SELECT DISTINCT kind FROM ({named})")
        return SingleShape("subject", str(found[0][0]) if len(found) == 1 else "")
    shapes = {_JSON.get(kind) for kind in kinds}
    if None in shapes:
        raise Unsupported("a field holds lists of lists")
    if shapes == {INT, FLOAT}:
        return FLOAT
    if len(shapes) > 1:
        raise Unsupported("a list holds values of several kinds")
    return next((shape for shape in shapes if shape is not None), NOTHING)


def _in_order(values: _FieldRows, listed: str, shape: Shape) -> str:
    """Sets in canonical order: subjects in order of creation, other values by value."""
    keys = ", ".join(f"u.{key}" for key in values.keys.split(", "))
    order = "u.e.v"
    joined = ""
    if isinstance(shape, SingleShape) and shape.name == "subject":
        joined = "LEFT JOIN firsts f ON f.rank = u.rank AND f.sid = u.e.v LEFT JOIN subjects n ON n.sid = u.e.v"
        order = "f.first NULLS LAST, n.name NULLS LAST, u.e.v"
    return f"""SELECT {keys}, coalesce(list(u.e ORDER BY {order}) FILTER (u.full), []) AS v,
                 NULL::TINYINT AS m
               FROM (SELECT {values.keys}, len(v) > 0 AS full,
                       unnest(CASE WHEN len(v) > 0 THEN v ELSE [NULL] END) AS e FROM ({listed})) u
               {joined} GROUP BY {keys}"""

"""Lists and sets in queries: subjects, fields of all elements, filters, single elements."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.builtin.kinds import PASSING
from tspec.check.columnar import operators, state
from tspec.check.columnar.reads import FEATURE_SHAPES, KNOWN
from tspec.check.columnar.relation import Relation, is_column
from tspec.check.columnar.scope import CONTEXT, MOMENTS, Frame, QueryScope
from tspec.check.columnar.shapes import (
    ABSENT,
    FLOAT,
    INT,
    MIXED,
    NO_REASON,
    NOT_RECORDED,
    NOTHING,
    STRING,
    TENSOR,
    Cell,
    ListShape,
    MapShape,
    Shape,
    SingleShape,
    Unsupported,
    bits,
    events_of,
    first_inside,
    first_of,
    sql_type,
)
from tspec.check.columnar.sql import text
from tspec.resolve.program import rules
from tspec.resolve.program.types import SetOf

_CARRIED = (
    "rank", "w", "c", "call_lo", "call_hi", "l_hi", "sample_lo", "sample_hi",
    *(f"{moment}_{name}" for moment in MOMENTS for name in ("at", *CONTEXT)),
)  # fmt: skip
"""Columns of an instance which its elements have too, so that names are read alike for them."""


# --- subjects -----------------------------------------------------------------------------------


def subjects(scope: QueryScope, kind: str, frame: Frame) -> Cell:
    """All subjects of a kind that exist at the instant, in order of creation."""
    at = frame.column("at")
    table = scope.relation.reading()
    lives = scope.facts.table(
        f"""SELECT l.sid, l.born, coalesce(l.died, (l.rank + 1) * {2**40}) AS died, f.first
            FROM lives l JOIN firsts f ON f.rank = l.rank AND f.sid = l.sid
            WHERE l.kind = {text(kind)}"""
    )
    inside = f"s.born <= r.{at} AND r.{at} < s.died AND s.born >= r.rank * {2**40}"
    if kind in PASSING:
        inside = f"s.first >= r.sample_lo AND s.first < r.sample_hi AND s.first <= r.{at}"
        lives = scope.facts.table(f"SELECT sid, first FROM firsts WHERE kind = {text(kind)}")
    key = scope.relation.key
    listed = (
        f"SELECT r.{key} AS i, list({{'v': s.sid, 'm': NULL::TINYINT}} ORDER BY s.first) AS l "
        f"FROM {table} r JOIN {lives} s ON {inside} GROUP BY r.{key}"
    )
    shape = ListShape(SingleShape("subject", kind))
    value, _ = _listed(scope, listed, "true", shape)
    if frame.when != "e":
        return Cell(value, NO_REASON, shape)
    return scope.relation.cell(
        f"CASE WHEN e_at IS NOT NULL THEN {value} END",
        "CASE WHEN e_at IS NULL THEN 2::TINYINT END",
        shape,
    )


def _listed(scope: QueryScope, query: str, known: str, shape: Shape) -> tuple[str, str]:
    """The lists `l` of a query by `i`: empty for a known collection without elements."""
    made = scope.facts.table(query)
    value, present = scope.relation.joined(
        f"LEFT JOIN {made} s ON s.i = r.{scope.relation.key}",
        (f"CASE WHEN {known} THEN coalesce(s.l, []::{sql_type(shape)}) END", "s.i IS NOT NULL"),
    )
    return value, present


# --- elements -----------------------------------------------------------------------------------


def elements(scope: QueryScope, cell: Cell, carried: Sequence[str] = ()) -> QueryScope:
    """A row for each element of a list: `parent` and `n` its place, `el_v` and `el_m` itself.

    Other columns of the parent can be carried along.
    """
    named = [*_CARRIED, *filter(is_column, carried)]
    kept, key = ", ".join(dict.fromkeys(named)), scope.relation.key
    table = scope.relation.reading(cell.value, *named)
    query = f"""(SELECT hash(parent, n) AS i, el.v AS el_v, el.m AS el_m, * EXCLUDE (el)
        FROM (SELECT {kept}, {key} AS parent, unnest({cell.value}) AS el,
                generate_subscripts({cell.value}, 1) AS n FROM {table}))"""
    return QueryScope(scope.facts, Relation(scope.facts, query, "i"), scope.window, {})


def regrouped(scope: QueryScope, parts: QueryScope, base: Cell, cell: Cell, condition: str) -> Cell:
    """For each parent, the list of a cell's values at the elements for which a condition holds."""
    assert isinstance(base.shape, ListShape)
    shape = ListShape(cell.shape, base.shape.is_set)
    test = parts.relation.column(condition)
    query = (
        f"SELECT parent AS i, list({{'v': {_typed(cell)}, 'm': {cell.why}}} ORDER BY n) AS l "
        f"FROM {parts.relation.query()} WHERE {test} GROUP BY parent"
    )
    value, _ = _listed(scope, query, f"r.{base.value} IS NOT NULL", shape)
    return Cell(value, base.why, shape)


def _typed(cell: Cell) -> str:
    return f"{cell.value}::{sql_type(cell.shape)}"


def _item(cell: Cell) -> Shape:
    assert isinstance(cell.shape, ListShape)
    return cell.shape.item


def restricted(
    scope: QueryScope, base: Cell, filters: Sequence[tuple[str, Cell]], frame: Frame
) -> Cell:
    """The elements whose fields are known to equal the values; `class` is an instance of it."""
    if not isinstance(base.shape, ListShape):
        return base
    base = _as_column(scope.relation, base)
    carried = [name for _, cell in filters for name in (cell.value, cell.why)]
    parts = elements(scope, base, carried)
    element = Cell("el_v", "el_m", _item(base))
    tests = []
    for name, value in filters:
        found = field_of(parts, element, name, frame, None)
        tests.append(holds(parts, name, found, value, frame))
    # If the recording cuts off the window, there is no instant at which filters could be read.
    kept = regrouped(
        scope, parts, base, element, " AND ".join(f"coalesce({t}, false)" for t in tests)
    )
    if frame.when != "e":
        return kept
    return scope.relation.cell(
        f"CASE WHEN e_at IS NOT NULL THEN {kept.value} END",
        f"CASE WHEN {kept.why} IS NOT NULL THEN {kept.why} WHEN e_at IS NULL THEN 2::TINYINT END",
        kept.shape,
    )


def holds(scope: QueryScope, name: str, found: Cell, value: Cell, frame: Frame) -> str:
    """SQL of one filter: the field equals the value. A missing field does not."""
    if name == "class":
        if isinstance(found.shape, SingleShape) and found.shape.name == "subject":
            found = state.of_subject(scope, found, "class", frame, None)
        return operators.is_instance(scope.relation, found, value).value
    return operators.compare(scope.relation, "==", found, value).value


# --- fields -------------------------------------------------------------------------------------


def field(scope: QueryScope, base: Cell, expr: rules.Field, frame: Frame, want: str | None) -> Cell:
    """A field of a subject or call; of a collection the list of fields (of sets: the union)."""
    if not isinstance(base.shape, ListShape):
        return field_of(scope, base, expr.name, frame, want)
    base = _as_column(scope.relation, base)
    parts = elements(scope, base)
    cell = field_of(parts, Cell("el_v", "el_m", _item(base)), expr.name, frame, want)
    if isinstance(expr.type, SetOf):
        return _union(scope, parts, base, cell)
    listed = Cell(base.value, base.why, ListShape(_item(base)))
    return regrouped(scope, parts, listed, cell, f"coalesce({cell.why}, 0) <> {ABSENT}")


def _union(scope: QueryScope, parts: QueryScope, base: Cell, cell: Cell) -> Cell:
    """The union of the elements' sets, in the canonical order of sets."""
    if not isinstance(cell.shape, ListShape):
        item: Shape = NOTHING
        sets = f"SELECT parent, rank, NULL AS e FROM {parts.relation.query()} WHERE false"
    else:
        item = cell.shape.item
        known = "true" if cell.shape.is_set else "false"
        sets = (
            f"SELECT DISTINCT parent, rank, unnest({cell.value}) AS e "
            f"FROM {parts.relation.query()} WHERE {cell.why} IS NULL AND {known}"
        )
    shape = ListShape(item, True)
    order, joined = "u.e.v", ""
    if isinstance(item, SingleShape) and item.name == "subject":
        joined = (
            "LEFT JOIN firsts f ON f.rank = u.rank AND f.sid = u.e.v "
            "LEFT JOIN subjects n ON n.sid = u.e.v"
        )
        order = "f.first NULLS LAST, n.name NULLS LAST"
    empty = f"NULL::{sql_type(shape)}"
    members = empty if item == NOTHING else "list(u.e ORDER BY " + order + ")"
    query = (
        f"SELECT a.i, a.m, b.l FROM (SELECT parent AS i, arg_min({cell.why}, n) FILTER "
        f"({cell.why} <> {ABSENT}) AS m FROM {parts.relation.query()} GROUP BY parent) a "
        f"LEFT JOIN (SELECT u.parent AS i, {members} AS l FROM ({sets}) u {joined} GROUP BY u.parent) b "
        "ON a.i = b.i"
    )
    made = scope.facts.table(query)
    value, why = scope.relation.joined(
        f"LEFT JOIN {made} s ON s.i = r.{scope.relation.key}",
        (
            f"CASE WHEN r.{base.value} IS NOT NULL THEN coalesce(s.l, []::{sql_type(shape)}) END",
            "s.m",
        ),
    )
    why = scope.relation.column(f"coalesce({base.why}, {why})")
    return scope.relation.cell(f"CASE WHEN {why} IS NULL THEN {value} END", why, shape)


def field_of(scope: QueryScope, base: Cell, name: str, frame: Frame, want: str | None) -> Cell:
    """A field of one subject or call in a frame, or a part of a device."""
    shape = base.shape
    if shape == STRING and name in ("type", "index"):
        return _of_device(scope.relation, base, name)
    if isinstance(shape, ListShape):
        raise Unsupported("fields of lists of lists are read")
    if isinstance(shape, SingleShape) and shape.name == "subject":
        return state.of_subject(scope, base, name, frame, want)
    if isinstance(shape, SingleShape) and shape.name == "call":
        return state.of_call(scope, base, events_of(shape), name, frame, want)
    return state.unread(scope, base)


def _of_device(relation: Relation, base: Cell, name: str) -> Cell:
    kind = f"string_split({base.value}, ':')[1]"
    if name == "type":
        return operators.known(relation, kind, STRING, base)
    number = f"try_cast(nullif(substr({base.value}, len({kind}) + 2), '') AS BIGINT)"
    found = operators.known(relation, number, INT, base)
    why = f"CASE WHEN {found.value} IS NULL THEN coalesce({found.why}, {ABSENT}::TINYINT) END"
    return Cell(found.value, relation.column(why), INT)


# --- lists themselves ---------------------------------------------------------------------------


def display(relation: Relation, cells: Sequence[Cell]) -> Cell:
    """`[a, b, c]`."""
    shapes = {cell.shape for cell in cells} - {NOTHING}
    if shapes == {INT, FLOAT}:
        shapes = {FLOAT}
    if len(shapes) > 1:
        cells, shapes = [_mixed(cell) for cell in cells], {MIXED}
    item: Shape = next(iter(shapes), NOTHING)
    kind = sql_type(item)
    held = ", ".join(f"{{'v': {cell.value}::{kind}, 'm': {cell.why}}}" for cell in cells)
    return Cell(
        relation.column(f"[{held}]::{sql_type(ListShape(item))}"), NO_REASON, ListShape(item)
    )


def _mixed(cell: Cell) -> Cell:
    """A value as the text of its shape and bits."""
    name = cell.shape.name if isinstance(cell.shape, SingleShape) else "list"
    value = f"'{name} ' || ({bits(cell.value, cell.shape)})::VARCHAR"
    why = first_of([cell.why, first_inside(cell.value, cell.shape)])
    return Cell(f"CASE WHEN {why} IS NULL THEN {value} END", why, MIXED)


def at_place(relation: Relation, base: Cell, place: str) -> Cell:
    """The element at a place, counted from 1, of a list that has it."""
    assert isinstance(base.shape, ListShape)
    element = relation.column(f"{base.value}[{place}]")
    return relation.cell(
        f"{element}.v", f"CASE WHEN {element} IS NULL THEN {NOT_RECORDED}::TINYINT ELSE {element}.m END",
        base.shape.item,
    )  # fmt: skip


def index(scope: QueryScope, base: Cell, place: Cell, want: str | None) -> Cell:
    """`x[0]`, `x[-1]`, `m["key"]`: absent where there is none."""
    relation = scope.relation
    if isinstance(base.shape, MapShape) and place.shape == STRING:
        return _of_map(scope, base, place, want)
    if isinstance(base.shape, ListShape) and place.shape == FLOAT:
        place = _whole(relation, place)
    if not isinstance(base.shape, ListShape) or place.shape != INT:
        return operators.unfit(relation, *(Cell(c.value, c.why, NOTHING) for c in (base, place)))
    why = relation.column(first_of([base.why, place.why]))
    element = relation.column(
        f"{base.value}[CASE WHEN {place.value} < 0 THEN len({base.value}) + {place.value} + 1 "
        f"ELSE {place.value} + 1 END]"
    )
    inside = f"{place.value} < len({base.value}) AND {place.value} >= -len({base.value})"
    return relation.cell(
        f"CASE WHEN {why} IS NULL AND {inside} THEN {element}.v END",
        f"CASE WHEN {why} IS NOT NULL THEN {why} WHEN {inside} THEN {element}.m ELSE {ABSENT}::TINYINT END",
        base.shape.item,
    )


def _whole(relation: Relation, place: Cell) -> Cell:
    """A place that `floor` or `round` computed: SQL computes it as a float."""
    number = relation.column(f"TRY_CAST({place.value} AS BIGINT)")
    why = f"CASE WHEN {place.why} IS NOT NULL THEN {place.why} WHEN {number} IS NULL THEN {NOT_RECORDED}::TINYINT END"
    return relation.cell(number, why, INT)


_MAP_SHAPES: dict[str, tuple[str, Shape]] = {
    "BOOLEAN": ("{j}::BOOLEAN", SingleShape("bool")),
    "BIGINT": ("{j}::BIGINT", INT),
    "UBIGINT": ("{j}::BIGINT", INT),
    "DOUBLE": ("j_float({j})", FLOAT),
    "float": ("j_float({j})", FLOAT),
    "VARCHAR": ("({j} ->> '$')", STRING),
}


def _of_map(scope: QueryScope, base: Cell, key: Cell, want: str | None) -> Cell:
    """The value of a map at a key; all values under that key must have one type."""
    relation = scope.relation
    why = relation.column(first_of([base.why, key.why]))
    held = relation.column(f"CASE WHEN {why} IS NULL THEN j_at({base.value}, {key.value}) END")
    sql, shape = _kept(scope, held, want)
    value = relation.column(f"CASE WHEN j_missing({held}) IS NULL THEN {sql.format(j=held)} END")
    lacking = f"CASE WHEN {value} IS NULL THEN {NOT_RECORDED}::TINYINT END"
    return relation.cell(
        value,
        f"CASE WHEN {why} IS NOT NULL THEN {why} WHEN {held} IS NULL THEN {ABSENT}::TINYINT "
        f"ELSE coalesce(j_missing({held}), {lacking}) END",
        shape,
    )


def _kept(scope: QueryScope, held: str, want: str | None) -> tuple[str, Shape]:
    """SQL of the value in JSON `{j}` of a map's values in a column, or of a feature of it, and its shape."""
    if want == KNOWN:
        return "true", SingleShape("bool")
    kind_of = (
        f"CASE json_type({held}) WHEN 'OBJECT' THEN json_keys({held})[1] ELSE json_type({held}) END"
    )
    kinds = {
        kind
        for (kind,) in scope.facts.ask(
            f"SELECT DISTINCT {kind_of} FROM {scope.relation.query()} WHERE {held} IS NOT NULL"
        )
    } - {"missing"}
    if kinds == {"tensor"}:
        return _of_tensor(want or "digest", TENSOR if want is None else FEATURE_SHAPES[want])
    if want is not None:
        if want == "finite" and kinds:
            raise Unsupported("whether a map's numbers are finite is read")
        return f"NULL::{sql_type(FEATURE_SHAPES[want])}", FEATURE_SHAPES[want]
    found = {_MAP_SHAPES.get(kind) for kind in kinds}
    if found == {_MAP_SHAPES["BIGINT"], _MAP_SHAPES["DOUBLE"]}:
        found = {_MAP_SHAPES["DOUBLE"]}
    if None in found or len(found) > 1:
        raise Unsupported("values of a map are of several kinds")
    return next((each for each in found if each is not None), ("NULL::BOOLEAN", NOTHING))


def _of_tensor(name: str, shape: Shape) -> tuple[str, Shape]:
    """SQL of a recorded feature of the tensor in JSON `{j}`."""
    if shape == FLOAT:
        return f"j_float({{j}} -> '$.tensor.{name}')", shape
    if isinstance(shape, ListShape):
        listed = f"from_json({{j}} -> '$.tensor.{name}', '[\"BIGINT\"]')"
        return f"list_transform({listed}, lambda it: {{{{'v': it, 'm': NULL::TINYINT}}}})", shape
    return f"({{j}} ->> '$.tensor.{name}')::{sql_type(shape)}", shape


def _as_column(relation: Relation, cell: Cell) -> Cell:
    """The cell with its value as a computed column, which joins can name."""
    return Cell(relation.computed(cell.value), cell.why, cell.shape)

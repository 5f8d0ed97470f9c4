"""The operators on columns: Kleene's logic, IEEE arithmetic, and missing results for missing
operands.


The counterpart of `tspec.check.interpret.values`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tspec.builtin.functions import FUNCTIONS, BuiltinFunction
from tspec.check.columnar.facts import Facts
from tspec.check.columnar.relation import Relation
from tspec.check.columnar.shapes import (
    ABSENT,
    BOOL,
    FLOAT,
    INT,
    MIXED,
    NO_REASON,
    NOT_RECORDED,
    NOTHING,
    NUMBERS,
    STRING,
    Cell,
    ListShape,
    MapShape,
    Shape,
    SingleShape,
    Unsupported,
    as_float,
    first_inside,
    first_of,
)


def first_why(*cells: Cell) -> str:
    """SQL of the reason of the first operand that is missing, or holds something missing."""
    pairs = ((cell.why, first_inside(cell.value, cell.shape)) for cell in cells)
    return first_of([reason for pair in pairs for reason in pair])


def known(relation: Relation, value: str, shape: Shape, *operands: Cell) -> Cell:
    """A total function of its operands, which has their reason where one is missing."""
    why = relation.column(first_why(*operands))
    if why == NO_REASON:
        return Cell(relation.column(value), why, shape)
    return relation.cell(f"CASE WHEN {why} IS NULL THEN {value} END", why, shape)


def unfit(relation: Relation, *operands: Cell) -> Cell:
    """Operands that do not fit: not recorded, unless they are missing themselves."""
    why = first_why(*operands)
    return Cell(
        "NULL::BOOLEAN", relation.column(f"coalesce({why}, {NOT_RECORDED}::TINYINT)"), NOTHING
    )


# --- comparison ---------------------------------------------------------------------------------


def compare(relation: Relation, op: str, left: Cell, right: Cell) -> Cell:
    """`left op right`."""
    if NOTHING in (left.shape, right.shape):
        return Cell("NULL::BOOLEAN", relation.column(first_why(left, right)), BOOL)
    if op in ("==", "!="):
        same = equal(left.value, left.shape, right.value, right.shape)
        return known(relation, same if op == "==" else f"NOT ({same})", BOOL, left, right)
    if left.shape in NUMBERS and right.shape in NUMBERS:
        return known(relation, _ordered(op, left, right), BOOL, left, right)
    if left.shape == right.shape == STRING:
        return known(relation, f"{left.value} {op} {right.value}", BOOL, left, right)
    cell = unfit(relation, left, right)
    return Cell(cell.value, cell.why, BOOL)


def _ordered(op: str, left: Cell, right: Cell) -> str:
    if left.shape == right.shape == INT:
        return f"{left.value} {op} {right.value}"
    if op in (">", ">="):
        left, right, op = right, left, op.replace(">", "<")
    return f"{'f_lt' if op == '<' else 'f_le'}({as_float(left)}, {as_float(right)})"


def equal(left: str, left_shape: Shape, right: str, right_shape: Shape) -> str:
    """SQL of `==` of two known values. Values of different kinds are never equal."""
    if isinstance(left_shape, ListShape) and isinstance(right_shape, ListShape):
        return _equal_lists(left, left_shape, right, right_shape)
    if isinstance(left_shape, ListShape | MapShape) or isinstance(
        right_shape, ListShape | MapShape
    ):
        if left_shape == right_shape:
            raise Unsupported("maps are compared")
        return "false"
    if MIXED in (left_shape, right_shape):
        raise Unsupported("a list of values of several kinds is compared")
    if left_shape in NUMBERS and right_shape in NUMBERS:
        if left_shape == right_shape == INT:
            return f"{left} = {right}"
        sides = [
            side if shape == FLOAT else f"({side})::DOUBLE"
            for side, shape in ((left, left_shape), (right, right_shape))
        ]
        return f"f_eq({sides[0]}, {sides[1]})"
    return f"{left} = {right}" if left_shape.name == right_shape.name else "false"


def _equal_lists(left: str, left_shape: ListShape, right: str, right_shape: ListShape) -> str:
    if left_shape.is_set != right_shape.is_set:
        return "false"
    if NOTHING in (left_shape.item, right_shape.item):
        return f"len({left}) = len({right})"
    each = equal("it[1].v", left_shape.item, "it[2].v", right_shape.item)
    pairs = f"list_transform(list_zip({left}, {right}), lambda it: {each})"
    return f"(len({left}) = len({right}) AND coalesce(list_bool_and({pairs}), true))"


def member(relation: Relation, item: Cell, collection: Cell) -> Cell:
    """`item in collection`. Missing items of the collection might be the item; absent ones are not."""
    why = relation.column(first_of([item.why, collection.why]))
    shape = collection.shape
    if NOTHING in (item.shape, shape):
        return Cell(
            "NULL::BOOLEAN", relation.column(f"coalesce({why}, {NOT_RECORDED}::TINYINT)"), BOOL
        )
    if shape == STRING and item.shape == STRING:
        value = f"contains({collection.value}, {item.value})"
        return relation.cell(f"CASE WHEN {why} IS NULL THEN {value} END", why, BOOL)
    if isinstance(shape, MapShape):
        return _in_map(relation, item, collection, why)
    if not isinstance(shape, ListShape):
        cell = unfit(relation, item, collection)
        return Cell(cell.value, cell.why, BOOL)
    if isinstance(item.shape, ListShape):
        answers = (
            f"list_transform({item.value}, lambda one: CASE WHEN one.m IS NULL THEN "
            f"{_in_list('one.v', item.shape.item, collection)} END)"
        )
        value = f"kleene_all({answers})"
    else:
        value = _in_list(item.value, item.shape, collection)
    return _answer(relation, value, why)


def _answer(relation: Relation, value: str, why: str) -> Cell:
    """A bool that is missing for `why`, or not recorded where its value is NULL."""
    answer = relation.column(f"CASE WHEN {why} IS NULL THEN {value} END")
    missing = f"coalesce({why}, {NOT_RECORDED}::TINYINT)"
    return Cell(answer, relation.column(f"CASE WHEN {answer} IS NULL THEN {missing} END"), BOOL)


def _in_list(item: str, shape: Shape, collection: Cell) -> str:
    assert isinstance(collection.shape, ListShape)
    inner = collection.shape.item
    lacking = f"(it.m IS NOT NULL AND it.m <> {ABSENT})"
    if isinstance(inner, ListShape) and inner.item != INT:
        raise Unsupported("membership in a list of lists of other than ints")
    plain = NOTHING not in (shape, inner) and FLOAT not in (shape, inner)
    if plain and isinstance(shape, SingleShape) and shape.name == inner.name:  # type: ignore[union-attr]
        found = f"list_contains(list_transform({collection.value}, lambda it: it.v), {item})"
    else:
        same = equal("it.v", inner, item, shape) if shape != NOTHING else "NULL"
        found = f"coalesce(list_bool_or(list_transform({collection.value}, lambda it: it.m IS NULL AND {same})), false)"
    unknown = (
        f"coalesce(list_bool_or(list_transform({collection.value}, lambda it: {lacking})), false)"
    )
    return f"CASE WHEN {found} THEN true WHEN {unknown} THEN NULL ELSE false END"


def _in_map(relation: Relation, item: Cell, collection: Cell, why: str) -> Cell:
    keys = f"json_keys({collection.value})"
    if isinstance(item.shape, MapShape):
        value = (
            f"kleene_all(list_transform(json_keys({item.value}), lambda k: CASE "
            f"WHEN NOT list_contains({keys}, k) THEN false "
            f"ELSE j_eq(j_at({item.value}, k), j_at({collection.value}, k)) END))"
        )
    elif item.shape == STRING:
        value = f"list_contains({keys}, {item.value})"
    else:
        raise Unsupported("membership of a list in a map")
    return _answer(relation, value, why)


# --- Kleene -------------------------------------------------------------------------------------


def truth(relation: Relation, cell: Cell) -> Cell:
    """A value used as a bool. A value that is neither bool nor missing gives `NOT_RECORDED`."""
    if cell.shape == BOOL:
        return cell
    why = relation.column(f"coalesce({cell.why}, {NOT_RECORDED}::TINYINT)")
    return Cell("NULL::BOOLEAN", why, BOOL)


def junction(relation: Relation, word: str, cells: Sequence[Cell]) -> Cell:
    """Kleene's `AND` or `OR`; unknown for the reason of the first that is unknown."""
    value = relation.column("(" + f" {word} ".join(cell.value for cell in cells) + ")")
    first = first_of([cell.why for cell in cells])
    if first == NO_REASON:
        return Cell(value, NO_REASON, BOOL)
    return Cell(value, relation.column(f"CASE WHEN {value} IS NULL THEN {first} END"), BOOL)


def negation(relation: Relation, cell: Cell) -> Cell:
    """Kleene's not."""
    return Cell(relation.column(f"NOT ({cell.value})"), cell.why, BOOL)


# --- arithmetic and functions -------------------------------------------------------------------


def arithmetic(relation: Relation, op: str, left: Cell, right: Cell) -> Cell:
    """`left op right`: exact in ints, else in float64."""
    if left.shape not in NUMBERS or right.shape not in NUMBERS:
        if NOTHING in (left.shape, right.shape):
            return Cell("NULL::DOUBLE", relation.column(first_why(left, right)), FLOAT)
        return unfit(relation, left, right)
    if op == "/" or FLOAT in (left.shape, right.shape):
        return known(relation, f"{as_float(left)} {op} {as_float(right)}", FLOAT, left, right)
    return known(relation, f"{left.value} {op} {right.value}", INT, left, right)


def negate(relation: Relation, value: Cell) -> Cell:
    """`-value`."""
    if value.shape not in NUMBERS:
        return value if value.shape == NOTHING else unfit(relation, value)
    return known(relation, f"-({value.value})", value.shape, value)


def function(facts: Facts, relation: Relation, name: str, cells: Sequence[Cell]) -> Cell:
    """A function of known values; missing where an argument is."""
    if any(cell.shape == NOTHING for cell in cells):
        return Cell("NULL::BOOLEAN", relation.column(first_why(*cells)), NOTHING)
    row = FUNCTIONS[name]
    if row.maps and isinstance(cells[0].shape, ListShape):
        many, *rest = cells
        item = Cell("it.v", NO_REASON, cells[0].shape.item)
        found = _of_known(facts, row, (item, *rest))
        if found is None:
            raise Unsupported(f"`{name}` of a list of other than it takes")
        sql = f"list_transform({many.value}, lambda it: {{'v': {found[0]}, 'm': NULL::TINYINT}})"
        return known(relation, sql, ListShape(found[1]), *cells)
    found = _of_known(facts, row, cells)
    if found is None:
        return unfit(relation, *cells)
    cell = known(relation, *found, *cells)
    if row.takes != ("dtype",):
        return cell
    lacking = (
        f"CASE WHEN {cell.value} IS NULL THEN coalesce({cell.why}, {NOT_RECORDED}::TINYINT) END"
    )
    return Cell(cell.value, relation.column(lacking), cell.shape)


_FITTING: Mapping[str, Collection[Shape]] = {
    "number": NUMBERS,
    "text": (STRING,),
    "dtype": (STRING,),
}
_SQL_TYPES = {"number": "DOUBLE", "text": "VARCHAR", "dtype": "VARCHAR", "bool": "BOOLEAN"}
_RESULTS = {"bool": BOOL, "string": STRING}


def _of_known(
    facts: Facts, row: BuiltinFunction, cells: Sequence[Cell]
) -> tuple[str, Shape] | None:
    """SQL of a function of known values, and its shape; None where a value does not fit."""
    if any(cell.shape not in _FITTING[kind] for kind, cell in zip(row.takes, cells, strict=True)):
        return None
    shape = _RESULTS.get(row.result, FLOAT)
    if row.sql is None:
        _learn(facts, row)
        return f"{row.name}({', '.join(cell.value for cell in cells)})", shape
    if row.sql_of_ints is not None and all(cell.shape == INT for cell in cells):
        sql = row.sql_of_ints.format(*(cell.value for cell in cells))
        return sql, _RESULTS.get(row.result, INT)
    values = (as_float(cell) if cell.shape in NUMBERS else cell.value for cell in cells)
    return row.sql.format(*values), shape


def _learn(facts: Facts, row: BuiltinFunction) -> None:
    """Make DuckDB call the Python function of a row."""
    assert row.of is not None, row.name
    if row.name not in facts.cache:
        import duckdb

        facts.con.create_function(
            row.name, row.of, [duckdb.sqltype(_SQL_TYPES[kind]) for kind in row.takes],
            duckdb.sqltype(_SQL_TYPES[row.result]),
        )  # fmt: skip
        facts.cache[row.name] = True


def is_instance(relation: Relation, classes: Cell, wanted: Cell) -> Cell:
    """One of a class's dotted paths (a string joined by blanks) is the wanted one, or one of a list."""
    if NOTHING in (classes.shape, wanted.shape):
        return Cell("NULL::BOOLEAN", relation.column(first_why(classes, wanted)), BOOL)
    if classes.shape != STRING:
        cell = unfit(relation, classes, wanted)
        return Cell(cell.value, cell.why, BOOL)
    return known(relation, instance_of(classes.value, wanted), BOOL, classes, wanted)


def instance_of(classes: str, wanted: Cell) -> str:
    """SQL of `is_instance` of known values."""
    paths = f"string_split({classes}, ' ')"
    if isinstance(wanted.shape, ListShape):
        if wanted.shape.item != STRING:
            return "false"
        return f"list_has_any({paths}, list_transform({wanted.value}, lambda it: it.v))"
    return f"list_contains({paths}, {wanted.value})" if wanted.shape == STRING else "false"

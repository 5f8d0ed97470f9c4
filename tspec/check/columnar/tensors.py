"""Features of a tensor, and of a list of tensors as one tensor.

The counterpart of `tspec.check.interpret.folds.feature`.
"""

from __future__ import annotations

from collections.abc import Callable

from tspec.builtin.features import DOTTED, FEATURES
from tspec.check.columnar import folds
from tspec.check.columnar.operators import known
from tspec.check.columnar.reads import KNOWN
from tspec.check.columnar.relation import Relation
from tspec.check.columnar.shapes import (
    FLOAT,
    INT,
    NOT_RECORDED,
    NOTHING,
    TENSOR,
    Cell,
    ListShape,
    first_of,
)

__all__ = ["TENSOR", "feature", "unread"]


def feature(relation: Relation, name: str, read: Callable[[str], Cell]) -> Cell:
    """A feature; `read` gives the tensor, or each of the list, as one of its recorded features."""
    cell = read(name)
    many = isinstance(cell.shape, ListShape) and (
        name != "shape" or isinstance(cell.shape.item, ListShape)
    )
    if name in DOTTED:
        return folds.without_absent(relation, cell) if many else cell
    if many:
        return _of_many(relation, name, cell, read)
    if name == "zeros":
        return _fraction(relation, cell, read("numel"))
    return cell


def unread(relation: Relation, *tensors: Cell) -> Cell:
    """A property of tensors that no trace holds: not recorded."""
    reasons = [cell.why for cell in tensors]
    why = relation.column(first_of(reasons, otherwise=f"{NOT_RECORDED}::TINYINT"))
    return Cell("NULL::BOOLEAN", why, NOTHING)


def _fraction(relation: Relation, zeros: Cell, numel: Cell) -> Cell:
    if NOTHING in (zeros.shape, numel.shape):
        return Cell("NULL::DOUBLE", zeros.why, FLOAT)
    sql = (
        f"CASE WHEN {numel.value} = 0 THEN 0.0::DOUBLE "
        f"ELSE {zeros.value}::DOUBLE / {numel.value}::DOUBLE END"
    )
    return known(relation, sql, FLOAT, zeros, numel)


def _of_many(relation: Relation, name: str, cell: Cell, read: Callable[[str], Cell]) -> Cell:
    if name == "finite":
        return folds.of_list(relation, "all", cell)
    if name == "zeros":
        return _zeros(relation, cell, read("numel"))
    if name == "mean":
        return _mean(relation, read("sum"), read("numel"))
    if name == "std":
        held = folds.without_absent(relation, read(KNOWN))
        inner = folds.first_reason(held.value, held.shape)
        why = f"coalesce({held.why}, {inner}, {NOT_RECORDED}::TINYINT)"
        return Cell("NULL::DOUBLE", relation.column(why), FLOAT)
    if name == "digest":
        held = folds.complete(relation, cell)
        return known(relation, f"combine_digests({folds.values(held)})", INT, held)
    if name == "norm":
        held = folds.complete(relation, cell)
        squares = f"list_transform({folds.values(held, FLOAT)}, lambda x: x * x)"
        return known(relation, f"sqrt({folds.float_sum(squares)})", FLOAT, held)
    many = FEATURES[name].many
    assert many is not None, name
    return folds.of_list(relation, many, cell)


def _zeros(relation: Relation, zeros: Cell, numel: Cell) -> Cell:
    zeros, numel = folds.complete(relation, zeros), folds.complete(relation, numel)
    total = f"coalesce(list_sum({folds.values(numel, INT)}), 0)::DOUBLE"
    count = f"coalesce(list_sum({folds.values(zeros, INT)}), 0)::DOUBLE"
    sql = f"CASE WHEN {total} = 0 THEN 0.0::DOUBLE ELSE {count} / {total} END"
    return known(relation, sql, FLOAT, zeros, numel)


def _mean(relation: Relation, sums: Cell, numel: Cell) -> Cell:
    sums, numel = folds.complete(relation, sums), folds.complete(relation, numel)
    total = f"list_sum({folds.values(numel, INT)})::DOUBLE"
    found = known(
        relation,
        f"CASE WHEN len({sums.value}) > 0 THEN {folds.float_sum(folds.values(sums, FLOAT))} / {total} END",
        FLOAT,
        sums,
        numel,
    )
    why = f"CASE WHEN {found.value} IS NULL THEN coalesce({found.why}, 3::TINYINT) END"
    return Cell(found.value, relation.column(why), FLOAT)

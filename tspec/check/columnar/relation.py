"""A relation that grows columns: the query behind the instances of a rule.

Columns are added one by one. Columns that do not depend on each other stand in one SELECT, others
in nested ones. The same SQL is never added twice, so several rules share one read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tspec.check.columnar.facts import Facts
from tspec.check.columnar.shapes import Cell, Shape

BEFORE = "\0before\0"
"""Placeholder for the query of the layer below. No text of a rule can contain it."""
_DEEPEST = 40
"""Nested SELECTs, beyond which the columns so far are put into a table: plans grow with depth."""


@dataclass(frozen=True, slots=True)
class Expression:
    """SQL of one value. `names` are the columns, fields and functions in it."""

    text: str
    names: frozenset[str]

    @property
    def is_atom(self) -> bool:
        """True if nothing is computed: the expression is the name of a column, or a literal."""
        return self.names <= {self.text}


def expression(text: str) -> Expression:
    """SQL with its names, as the engine's own lexer finds them. The name of a type, after `::`, is
    left out.
    """
    import duckdb  # rules that are checked otherwise do without the engine

    whole, tokens = text.encode(), duckdb.tokenize(text)
    starts = [start for start, _ in tokens]
    words = [whole[start:end].strip() for start, end in pairwise([*starts, len(whole)])]
    names = (
        word.decode()
        for (_, kind), before, word in zip(tokens, [b"", *words][: len(words)], words, strict=True)
        if kind == duckdb.token_type.identifier and before != b"::"
    )
    return Expression(text, frozenset(names))


def is_column(sql: str) -> bool:
    """SQL that is the name of a column, and no literal."""
    return sql.isidentifier() and sql not in ("true", "false", "NULL")


def own(sql: str) -> str:
    """A column or literal as seen from a join with `r`."""
    return f"r.{sql}" if is_column(sql) else sql


class Relation:
    """Rows of a table or query, and columns computed from them. `key` is unique in the rows.

    Columns are computed lazily: the engine leaves out the columns, and the joins' columns, that a
    query over the relation does not name.
    """

    def __init__(self, facts: Facts, source: str, key: str) -> None:
        self.key = key
        self._facts = facts
        self._given = self._source = source
        self._layers: list[str] = []
        """Queries, each over `BEFORE`, the layer below."""
        self._depths: dict[str, int] = {}
        """Computed column -> the number of layers above which it exists."""
        self._pending: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._added: set[str] = set()

    def column(self, sql: str) -> str:
        """The column of an expression over the columns so far; an atom stays as it is."""
        return sql if expression(sql).is_atom else self.computed(sql)

    def computed(self, sql: str) -> str:
        """The same, where an atom is given a name of its own, which joins can name."""
        if self.has_computed(sql):
            return sql
        if sql not in self._known:
            if not expression(sql).names.isdisjoint(self._pending):
                self._close()
            self._known[sql] = self._fresh()
            self._pending[self._known[sql]] = sql
        return self._known[sql]

    def has_computed(self, sql: str) -> bool:
        """True if the text is the name of a column that was added here."""
        return sql in self._added

    def cell(self, value: str, why: str, shape: Shape) -> Cell:
        """A cell of two expressions."""
        return Cell(self.column(value), self.column(why), shape)

    def joined(self, join: str, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Join: `join` is SQL after `FROM this r`, `columns` are expressions over both sides."""
        known = f"{join} {columns}"
        if known not in self._known:
            self._close()
            names = [self._fresh() for _ in columns]
            added = ", ".join(f"{c} AS {n}" for c, n in zip(columns, names, strict=True))
            self._add(f"SELECT r.*, {added} FROM {BEFORE} r {join}", names)
            self._known[known] = " ".join(names)
        return tuple(self._known[known].split(" "))

    def keep(self, condition: str, word: str = "WHERE") -> None:
        """Drop the rows for which a condition is not true; `QUALIFY` is the word for conditions on
        window functions.
        """
        self._close()
        self._layers.append(f"SELECT * FROM {BEFORE} {word} {condition}")

    def query(self) -> str:
        """The relation as it is now, to stand after FROM."""
        self._close()
        return self._nested(len(self._layers))

    def reading(self, *expressions: str) -> str:
        """The query with the columns that expressions name, whatever was added or dropped since.

        It computes less than `query`, and of the same expressions it is the same text, so that a table made
        of it is made once.
        """
        named = {name for each in expressions for name in expression(each).names} & self._added
        if not named:
            return self._given
        if not named.isdisjoint(self._pending):
            self._close()
        return self._nested(max(self._depths.get(name, 0) for name in named))

    def _nested(self, depth: int) -> str:
        query = self._source
        for layer in self._layers[:depth]:
            query = f"({layer.replace(BEFORE, query, 1)})"
        return query

    def _add(self, layer: str, names: Iterable[str]) -> None:
        self._layers.append(layer)
        self._depths |= dict.fromkeys(names, len(self._layers))

    def table(self, *columns: str) -> str:
        """A table of some columns."""
        named = ", ".join(dict.fromkeys([self.key, *columns]))
        return self._facts.table(f"SELECT {named} FROM {self.query()}")

    def _close(self) -> None:
        if self._pending:
            added = ", ".join(f"{sql} AS {name}" for name, sql in self._pending.items())
            self._add(f"SELECT *, {added} FROM {BEFORE}", self._pending)
            self._pending = {}
        if len(self._layers) > _DEEPEST:
            whole = self._nested(len(self._layers))
            self._source, self._layers = self._facts.table(f"SELECT * FROM {whole}"), []
            self._depths = {}

    def _fresh(self) -> str:
        name = f"x{next(self._facts.names)}"
        self._added.add(name)
        return name

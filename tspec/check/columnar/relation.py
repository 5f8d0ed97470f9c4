"""A relation that grows columns: the query behind the instances of a rule.

Columns are added one by one. Those that do not depend on each other are computed in one SELECT, others
in nested ones, and a query computes only the columns that it is asked for: the engine takes longer to
plan a query than to run it, the longer the more SELECTs are nested. The same SQL is never added
twice, so several rules share one read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from tspec.check.columnar.facts import Facts
from tspec.check.columnar.shapes import Cell, Shape

_DEEPEST = 20
"""The number of columns that depend on one another, beyond which all columns so far are put into a table."""
_ALIASES = frozenset("koqs")
"""The names that joins give to the tables that they join. The relation itself is `r`."""


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
    words = list(_words(text))
    names = (
        word
        for (word, is_name, _), (before, _, _) in zip(words, [("", False, 0), *words], strict=False)
        if is_name and before != "::"
    )
    return Expression(text, frozenset(names))


def _words(text: str) -> Iterator[tuple[str, bool, int]]:
    """The words of SQL, whether each is a name, and the place of each in the text as UTF-8."""
    import duckdb  # rules that are checked otherwise do without the engine

    whole, tokens = text.encode(), duckdb.tokenize(text)
    places = [*(start for start, _ in tokens), len(whole)]
    for (start, kind), (_, end) in zip(tokens, pairwise(places), strict=True):
        word = whole[start:end].strip().decode()
        yield word, kind == duckdb.token_type.identifier, start


def _renamed(text: str, number: int) -> str:
    """A join's SQL, in which its tables have a number after their names."""
    whole = text.encode()
    parts, done = [], 0
    for word, is_name, start in _words(text):
        if is_name and word in _ALIASES:
            end = start + len(word)
            parts += [whole[done:end], str(number).encode()]
            done = end
    return b"".join([*parts, whole[done:]]).decode()


def is_column(sql: str) -> bool:
    """SQL that is the name of a column, and no literal."""
    return sql.isidentifier() and sql not in ("true", "false", "NULL")


def own(sql: str) -> str:
    """A column or literal as seen from a join with `r`."""
    return f"r.{sql}" if is_column(sql) else sql


@dataclass(frozen=True, slots=True)
class _Step:
    """Columns that are added together: by a join, or without one.

    `level` is one more than that of the steps that it needs. It is computed of the rows that the first
    `kept` conditions leave.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    join: str
    needs: frozenset[str]
    level: int
    kept: int


@dataclass(frozen=True, slots=True)
class _Condition:
    """Rows for which it is not true are dropped. `word` is `WHERE`, or `QUALIFY` before window functions."""

    text: str
    word: str
    needs: frozenset[str]


class Relation:
    """Rows of a table or query, and columns computed from them. `key` is unique in the rows.

    A join finds at most one row for each row of the relation.
    """

    def __init__(self, facts: Facts, source: str, key: str) -> None:
        self.key = key
        self._facts = facts
        self._given = self._source = source
        self._steps: dict[str, _Step] = {}
        """The step that adds a column, for each one that the source does not have."""
        self._conditions: list[_Condition] = []
        self._known: dict[str, tuple[str, ...]] = {}
        self._added: set[str] = set()

    def column(self, sql: str) -> str:
        """The column of an expression over the columns so far; an atom stays as it is."""
        return sql if expression(sql).is_atom else self.computed(sql)

    def computed(self, sql: str) -> str:
        """The same, where an atom is given a name of its own, which joins can name."""
        if self.has_computed(sql):
            return sql
        if sql not in self._known:
            self._known[sql] = self._add((sql,), "", expression(sql).names)
        return self._known[sql][0]

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
            needs = frozenset().union(*(expression(each).names for each in (join, *columns)))
            self._known[known] = self._add(columns, join, needs)
        return self._known[known]

    def keep(self, condition: str, word: str = "WHERE") -> None:
        """Drop the rows for which a condition is not true; `QUALIFY` is the word for conditions on
        window functions.
        """
        self._conditions.append(_Condition(condition, word, expression(condition).names))

    def query(self) -> str:
        """The relation as it is now, to stand after FROM."""
        return self._query(self._steps, len(self._conditions))

    def reading(self, *expressions: str) -> str:
        """The query with the columns that expressions name, whatever was added or dropped since.

        Of the same expressions it is the same text, so that a table made of it is made once.
        """
        named = {name for each in expressions for name in expression(each).names} & self._added
        if not named:
            return self._given
        steps = [self._steps[name] for name in named if name in self._steps]
        return self._query(named, max((each.kept for each in steps), default=0))

    def table(self, *columns: str) -> str:
        """A table of some columns."""
        named = dict.fromkeys([self.key, *columns])
        query = self._query(named, len(self._conditions))
        return self._facts.table(f"SELECT {', '.join(named)} FROM {query}")

    def _query(self, named: Iterable[str], kept: int) -> str:
        """The query with some columns, of the rows that the first `kept` conditions leave."""
        conditions = self._conditions[:kept]
        needed = self._needed([*named, *(name for each in conditions for name in each.needs)])
        query = self._source
        for number in range(kept + 1):
            query = _with_steps(query, [each for each in needed if each.kept == number])
            if number < kept:
                each = conditions[number]
                query = f"(SELECT * FROM {query} {each.word} {each.text})"
        return query

    def _needed(self, names: Iterable[str]) -> list[_Step]:
        """The steps that columns need, in the order in which they were added."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in self._steps and name not in found:
                found.update(self._steps[name].names)
                waiting += self._steps[name].needs
        steps = (step for name, step in self._steps.items() if name == step.names[0])
        return [each for each in steps if each.names[0] in found]

    def _add(self, columns: tuple[str, ...], join: str, names: frozenset[str]) -> tuple[str, ...]:
        """Add columns, and return their names."""
        needs = names & self._steps.keys()
        level = 1 + max((self._steps[name].level for name in needs), default=0)
        if level > _DEEPEST:
            self._source = self._facts.table(f"SELECT * FROM {self.query()}")
            self._steps, self._conditions = {}, []
            needs, level = frozenset(), 1
        added = tuple(f"x{next(self._facts.names)}" for _ in columns)
        step = _Step(added, columns, join, needs, level, len(self._conditions))
        self._steps.update(dict.fromkeys(added, step))
        self._added.update(added)
        return added


def _with_steps(query: str, steps: list[_Step]) -> str:
    """A query with the columns of some steps: of each level in one SELECT, and its joins in another."""
    levels: dict[tuple[int, bool], list[_Step]] = {}
    for each in steps:
        levels.setdefault((each.level, bool(each.join)), []).append(each)
    for level, has_joins in sorted(levels):
        together = levels[level, has_joins]
        write: Callable[[str, int], str] = _renamed if has_joins else lambda text, _: text
        added = ", ".join(
            f"{write(column, number)} AS {name}"
            for number, each in enumerate(together)
            for column, name in zip(each.columns, each.names, strict=True)
        )
        if has_joins:
            joins = " ".join(_renamed(each.join, number) for number, each in enumerate(together))
            query = f"(SELECT r.*, {added} FROM {query} r {joins})"
        else:
            query = f"(SELECT *, {added} FROM {query})"
    return query

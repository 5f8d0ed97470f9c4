"""A relation gives what is asked for: what was added for one claim is not computed for the next."""

from tspec.check.columnar.facts import Facts, load
from tspec.check.columnar.relation import Relation, expression
from tspec.trace.model import Stream, Trace


def rows(facts: Facts, query: str) -> list[tuple[object, ...]]:
    return facts.ask(f"SELECT i, call_lo FROM {query} ORDER BY i")


def test_reading_the_rows_is_the_same_query_whatever_was_added_since() -> None:
    with Facts(load(Trace((Stream(0, ()),), 1), ()), 1) as facts:
        source = "(SELECT i, i * 10 AS call_lo FROM range(3) t(i))"
        relation = Relation(facts, source, "i")
        before = relation.reading()
        (joined,) = relation.joined("LEFT JOIN (SELECT 1 AS i, 7 AS v) s ON s.i = r.i", ("s.v",))
        doubled = relation.column(f"{joined} * 2")
        assert relation.reading() == before
        assert rows(facts, before) == [(0, 0), (1, 10), (2, 20)]
        reading = relation.reading(doubled)
        relation.joined("LEFT JOIN (SELECT 1 AS i, 8 AS v) s ON s.i = r.i", ("s.v",))
        relation.keep("i = 2")
        assert relation.reading(doubled) == reading
        assert facts.ask(f"SELECT {doubled} FROM {reading} WHERE i = 1") == [(14,)]
        assert rows(facts, relation.query()) == [(2, 20)]


def test_a_column_is_read_also_after_deep_relations_became_a_table() -> None:
    with Facts(load(Trace((Stream(0, ()),), 1), ()), 1) as facts:
        relation = Relation(facts, "(SELECT i, i * 10 AS call_lo FROM range(3) t(i))", "i")
        name = "call_lo"
        for _ in range(100):
            name = relation.column(f"{name} + 1")
        asked = f"SELECT {name} FROM {relation.reading(name)} ORDER BY 1"
        assert facts.ask(asked) == [(100,), (110,), (120,)]


def test_the_names_in_sql_are_those_of_columns_and_functions_only() -> None:
    found = expression("hash(x1, 'x2 é'::VARCHAR, r.x3::DOUBLE, 4)")
    assert found.names == {"hash", "x1", "r", "x3"}
    assert [
        sql
        for sql in ("x1", "NULL::TINYINT", "-5", "true", "'x1'", "x1 + 1", "f()")
        if expression(sql).is_atom
    ] == ["x1", "NULL::TINYINT", "-5", "true", "'x1'"]


def test_a_column_over_another_of_the_same_layer_stands_above_it() -> None:
    with Facts(load(Trace((Stream(0, ()),), 1), ()), 1) as facts:
        relation = Relation(facts, "(SELECT i FROM range(3) t(i))", "i")
        row = relation.column("row_number() OVER (ORDER BY i)")
        after = relation.column(f"lag({row}) OVER (ORDER BY i)")
        assert relation.column("7") == "7"
        assert relation.computed(row) == row
        seven = relation.computed("7")
        asked = f"SELECT {row}, {after}, {seven} FROM {relation.query()} ORDER BY i"
        assert facts.ask(asked) == [(1, None, 7), (2, 1, 7), (3, 2, 7)]

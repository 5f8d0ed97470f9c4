"""The grammar is strict LALR(1), its tables are those of the grammar, and words are free."""

import subprocess
import sys
from pathlib import Path

import pytest

from tspec.resources import shipped
from tspec.source import Source
from tspec.syntax import tables
from tspec.syntax.clauses import KEYWORDS
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse
from tspec.syntax.tokens import keywords, tokenize
from tspec.syntax.unexpected import ITEM_WORDS, RESERVED

SHIPPED = sorted(shipped("stdlib").rglob("*.tspec")) + sorted(shipped("specs").rglob("*.tspec"))


def test_the_grammar_is_strict_and_its_tables_are_up_to_date():
    built = tables.build()  # raises where the grammar is ambiguous, and where terminals collide
    assert tables.PATH.read_text(encoding="utf-8") == built, "run python -m tspec.syntax.tables"


def test_an_ambiguous_grammar_is_refused():
    with pytest.raises(Exception, match="conflict"):
        tables.from_grammar('item: "a" item? item?\n%ignore " "\nCOMMENT: "c"\n')


@pytest.mark.parametrize("word", sorted(set(keywords().values()) - set(RESERVED)))
def test_keywords_are_free_as_names(word):
    text = f"""edition 2026

module {word}.{word}

use std.{word} as {word} with {word}.{word}: off, {word}: stop

let {word} = {word}({word}: {word}.{word}[{word}]) + {word}

context {{
  {word}.{word}: {word} | {word}
}}

entity {word} {{
  {word}: {word}<{word}?>? = {word}
}}

event {word}.{word} = call {word}.{word} {{
  {word}: {word}
}}

draft invariant {word} {{
  for {word} in {word}
  across {word}
  during {word}({word}: {word})
  when {word} and not {word}
  expect {word} only during {word}.{word}
  inferred {{
    {word}: {word}
  }}
}}

layout {word} on {word} {{
  param "x": [{word} / {word}({word})] partial {word} when {word}
}}

test "names" {{
  events on mesh {word} {{
    step 1 {{ {word}.x, {word} = {word}, {word}({word}: 1) {{ {word} }} }}
  }}
  violates {word}
  passes {word}
}}
"""
    parsed = parse(Source("words.tspec", text))
    assert parsed.diagnostics == ()
    assert format_file(parsed.file) == text


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
@pytest.mark.parametrize("width", [1, 60, 100])
def test_what_ships_is_read_and_formatted_faithfully(path: Path, width: int):
    parsed = parse(Source.read(path))
    assert parsed.diagnostics == ()
    text = format_file(parsed.file, width)
    again = parse(Source(path.name, text))
    assert again.diagnostics == ()
    assert again.file == parsed.file
    assert format_file(again.file, width) == text


def test_lists_of_keywords_hold_words_of_the_grammar():
    grammar = set(keywords().values())
    assert set(ITEM_WORDS) <= grammar
    assert set(RESERVED) <= grammar
    assert {word for words in KEYWORDS.values() for word in words} <= grammar


def test_a_number_and_its_unit_are_on_one_line():
    text = "edition 2026\n\nlet a = [0\nsteps]\n"
    assert [t.type for t in tokenize(Source("a", text)).words[-3:-1]] == ["INT", "STEPS"]
    (found,) = parse(Source("a", text)).diagnostics
    assert found.code == "TS0001"


def test_every_node_knows_its_place():
    source = Source.read(shipped("stdlib") / "torch.tspec")
    file = parse(source).file
    for declaration in file.declarations:
        for node in declaration.walk():
            assert declaration.span.start <= node.span.start < node.span.end
            for child in node.children():
                assert node.span.start <= child.span.start <= child.span.end <= node.span.end


def test_reading_and_writing_import_nothing_heavy():
    heavy = ("torch", "z3", "duckdb", "pyarrow", "numpy", "jinja2", "typer", "rich")
    program = (
        "import sys, tspec.syntax.format, tspec.syntax.parse as parse\n"
        "from tspec.source import Source\n"
        "parse.parse(Source('a', 'edition 2026'))\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr

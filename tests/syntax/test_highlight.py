"""Colours of specs: all that ships is highlighted without errors, and keywords are the grammar's."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hypothesis import given
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    String,
    Token,
    Whitespace,
)

from tests.syntax.trees import files
from tspec.resources import shipped
from tspec.syntax.format import format_file
from tspec.syntax.highlight import CLAUSES, CONSTANTS, DECLARATIONS, OPERATORS, VALUES, TspecLexer
from tspec.syntax.tokens import keywords

SHIPPED = sorted(shipped("stdlib").rglob("*.tspec")) + sorted(shipped("specs").rglob("*.tspec"))
LISTS = (DECLARATIONS, CLAUSES, VALUES, OPERATORS, CONSTANTS)


def shown(text: str) -> list[tuple[object, str]]:
    """The tokens of a text, without white space."""
    return [
        (kind, word)
        for kind, word in TspecLexer().get_tokens(text)
        if kind not in (Whitespace, Token.Text.Whitespace)
    ]


def test_the_keywords_are_those_of_the_grammar() -> None:
    listed = [word for words in LISTS for word in words]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(keywords().values())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_what_ships_is_highlighted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tokens = list(TspecLexer(stripnl=False, ensurenl=False).get_tokens(text))
    assert "".join(word for _, word in tokens) == text
    assert [word for kind, word in tokens if kind is Error] == []
    assert {Keyword.Namespace, Name.Namespace} <= {kind for kind, _ in tokens}


@given(files)
def test_whatever_the_language_can_say_is_highlighted(file: object) -> None:
    text = format_file(file)  # type: ignore[arg-type]
    assert [word for kind, word in TspecLexer().get_tokens(text) if kind is Error] == []


def test_what_is_no_sign_of_the_language_is_an_error() -> None:
    assert (Error, ";") in shown("let a = 1;")


def test_words_are_what_they_are_where_they_stand() -> None:
    text = """/// What it says.
invariant step_is_small {
  for p in parameters(requires_grad: true)
  before optimizer.step every 10 steps
  when step > 1e3 and p.step < 90% // why
  expect norm(p.grad) <= 2 or "a\\n" in p.name
  else warn, then stop after 5 consecutive steps
}
"""
    tokens = shown(text)
    assert tokens[0] == (Comment.Special, "/// What it says.")
    assert tokens[1:3] == [(Keyword.Declaration, "invariant"), (Name.Class, "step_is_small")]
    for expected in (
        (Keyword, "for"),
        (Operator.Word, "in"),
        (Name.Function, "parameters"),
        (Name.Label, "requires_grad"),
        (Keyword.Constant, "true"),
        (Keyword, "before"),
        (Number, "10"),
        (Keyword.Type, "steps"),
        (Keyword.Pseudo, "step"),
        (Name.Attribute, "step"),
        (Number.Float, "1e3"),
        (Number, "90%"),
        (Comment.Single, "// why"),
        (String.Escape, "\\n"),
        (Keyword.Pseudo, "warn"),
        (Keyword, "consecutive"),
    ):
        assert expected in tokens, expected
    assert tokens.count((Name.Attribute, "step")) == 2


def test_pygments_finds_it() -> None:
    registered = {each.name: each.value for each in entry_points(group="pygments.lexers")}
    assert registered["tspec"] == "tspec.syntax.highlight:TspecLexer"
    assert isinstance(get_lexer_by_name("tspec"), TspecLexer)
    assert isinstance(get_lexer_for_filename("rules.tspec"), TspecLexer)

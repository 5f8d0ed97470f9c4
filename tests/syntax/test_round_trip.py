"""Formatting and reading are each other's inverse; comments and texts of any kind survive."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.syntax.trees import files
from tspec.diagnostics import render
from tspec.source import Source
from tspec.syntax.format import WIDTH, format_file
from tspec.syntax.parse import parse
from tspec.syntax.tokens import tokenize

THOROUGH = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
WIDTHS = st.sampled_from([1, 20, 40, 80, WIDTH, 10**6])


def read(text):
    parsed = parse(Source("random.tspec", text))
    errors = [d for d in parsed.diagnostics if d.severity == "error"]
    assert not errors, "\n".join([text, *map(render, errors)])
    return parsed.file


@THOROUGH
@given(files, WIDTHS)
def test_reading_what_was_formatted_gives_the_same_tree(file, width):
    assert read(format_file(file, width)) == file


@pytest.mark.slow
@THOROUGH
@given(files, WIDTHS, WIDTHS)
def test_formatting_again_changes_nothing(file, width, other):
    text = format_file(file, width)
    assert format_file(read(text), width) == text
    again = format_file(read(text), other)
    assert format_file(read(again), other) == again


@st.composite
def commented(draw):
    """A text with comments and line breaks between its tokens."""
    text = format_file(draw(files), draw(WIDTHS))
    words = tokenize(Source("random.tspec", text)).words
    if not words:
        return text
    places = draw(st.lists(st.integers(0, len(words) - 1), max_size=5, unique=True))
    for number, index in enumerate(sorted(places, reverse=True)):
        at = words[index].start_pos
        own_line = draw(st.sampled_from(["", "\n", "\n\n"]))
        text = f"{text[:at]}{own_line}// comment {number}\n{text[at:]}"
    return text


def texts_of_comments(file):
    return [each.text for node in file.walk() for each in node.trivia.comments]


@THOROUGH
@given(commented(), WIDTHS)
def test_comments_survive_and_stay(text, width):
    file = read(text)
    comments = sorted(re.findall(r"// comment \d", text))
    assert sorted(texts_of_comments(file)) == comments
    formatted = format_file(file, width)
    again = read(formatted)
    assert again == file
    assert sorted(re.findall(r"// comment \d", formatted)) == comments
    assert format_file(again, width) == formatted


@THOROUGH
@given(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])))
def test_a_comment_may_hold_anything(words):
    text = f"edition 2026\n//{words}\n\nlet a = [ //{words}\n  1 //{words}\n  //{words}\n]\n"
    comment = f"//{words}".rstrip()
    file = parse(Source("random.tspec", text)).file
    assert texts_of_comments(file) == [comment] * 4
    formatted = format_file(file)
    assert formatted.count(comment) >= 4
    assert format_file(parse(Source("random.tspec", formatted)).file) == formatted


@pytest.mark.parametrize("width", [1, 30, WIDTH])
def test_every_literal_comes_back(width):
    text = 'edition 2026\n\nlet a = [1, 1e-4, 2.5e6, 90%, 0.5%, 1 step, 2 steps, "\\u{202E}", -1]\n'
    file = read(text)
    assert format_file(read(format_file(file, width))) == text

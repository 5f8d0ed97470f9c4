"""Nothing that anybody can write makes the parser, the messages or the formatter raise."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.syntax.trees import files
from tspec.diagnostics import WIDTH, render
from tspec.resources import shipped
from tspec.source import Source
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse
from tspec.syntax.tokens import keywords, signs, tokenize

PATIENT = settings(deadline=None)
TOKENS = [
    *keywords().values(),
    *signs().values(),
    "x",
    "1",
    "0.5",
    "10 steps",
    '"a"',
    "'",
    '"',
    "\n",
]
SPECS = [
    path.read_text(encoding="utf-8")
    for path in sorted(shipped("stdlib").glob("*.tspec"))
    if path.stem in ("health", "megatron", "behaviour", "torch")
]
SPECS.append((Path(__file__).parents[1] / "equivalence/family.tspec").read_text(encoding="utf-8"))


def survives(text):
    source = Source("fuzz.tspec", text)
    parsed = parse(source)
    for found in parsed.diagnostics:
        assert 0 <= found.span.start <= found.span.end <= len(text)
        shown = render(found)
        assert found.code in shown
        assert max(map(len, shown.split("\n"))) <= WIDTH
    format_file(parsed.file)
    return parsed


@pytest.mark.slow
@PATIENT
@given(st.text())
def test_any_text(text):
    survives(text)


@PATIENT
@given(st.lists(st.sampled_from(TOKENS), max_size=60).map(" ".join))
def test_any_tokens(text):
    survives(f"edition 2026\n{text}")


@st.composite
def mutated(draw):
    """A spec with tokens deleted, doubled, swapped or replaced, or cut off."""
    text = draw(st.sampled_from(SPECS) | files.map(format_file))
    words = tokenize(Source("fuzz.tspec", text)).words
    for _ in range(draw(st.integers(1, 4))):
        if not words:
            break
        word = draw(st.sampled_from(words))
        start = min(word.start_pos, len(text))
        end = min(start + len(word), len(text))
        change = draw(st.sampled_from(["", text[start:end] * 2, "\x00", *TOKENS]))
        text = text[:start] + change + text[end:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@PATIENT
@given(mutated())
def test_any_spoilt_spec(text):
    survives(text)


@pytest.mark.slow
@PATIENT
@given(st.sampled_from(SPECS), st.data())
def test_an_error_in_one_declaration_leaves_the_others(text, data):
    whole = parse(Source("fuzz.tspec", text)).file
    spoilt = data.draw(st.sampled_from(whole.declarations))
    last = spoilt.span.end
    parsed = survives(text[: last - 1] + " 5 5 " + text[last - 1 :])
    kept = [each for each in whole.declarations if each is not spoilt]
    assert list(parsed.file.declarations) in (kept, list(whole.declarations))


def test_parentheses_that_say_nothing_may_be_many():
    assert not survives("edition 2026\nlet a = " + "(" * 5000 + "1" + ")" * 5000).diagnostics


def test_long_and_deep_texts_are_read_or_refused():
    for text in (
        "(" * 5000,
        "let a = " + "-" * 5000 + "1",
        "let a = " + "not " * 5000 + "x",
        "let a = x" + ".x" * 5000,
        "let a = x" + " + x" * 5000,
        "let a = x" + " implies x" * 5000,
        "let a: " + "list<" * 5000,
        "entity e {\n a: " + "list<" * 3000 + "int" + ">" * 3000 + "\n}",
        'test "t" { events { step 1 {' + " x {" * 3000,
        "let a = " + "9" * 5000,
        "{" * 3000 + "}" * 3000,
        "let " * 3000,
    ):
        assert survives(f"edition 2026\n{text}").diagnostics

"""What a rule can name: the page lists all of it, each example means something, `tspec explain` knows it."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tspec.builtin.actions import ACTIONS
from tspec.builtin.features import FEATURES
from tspec.builtin.folds import FOLDS
from tspec.builtin.functions import FUNCTIONS
from tspec.cli.app import app
from tspec.resolve import load, load_text
from tspec.resolve.program.documentation import hint
from tspec.resources import shipped
from tspec.vocabulary.entries import VocabularyEntry, named
from tspec.vocabulary.page import as_markdown, vocabulary

PAGE = Path(__file__).resolve().parents[2] / "docs" / "vocabulary.md"
ENTRIES = vocabulary()


def test_the_page_is_what_the_command_prints(request: pytest.FixtureRequest) -> None:
    written = as_markdown(ENTRIES)
    if request.config.getoption("--update-cases"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written
    assert CliRunner().invoke(app, ["explain", "--vocabulary"]).output == written


def test_all_that_ships_is_documented() -> None:
    """Each declaration, each field of one, and each value of the context has its `///`."""
    assert [each.qualified for each in ENTRIES if not each.meaning] == []


def test_every_rule_that_ships_says_what_to_look_at() -> None:
    program = load([shipped("stdlib")]).program
    assert program is not None
    assert [rule.qualified for rule in program.rules if not hint(rule.doc)] == []


def test_every_example_resolves() -> None:
    """Those of one module at once; what is wrong with one is shown with its line."""
    heads: dict[str, list[str]] = defaultdict(list)
    for entry in ENTRIES:
        head, _, rule = entry.text.partition("invariant example ")
        heads[head].append(f"invariant example_{len(heads[head])} {rule}")
    for head, rules in heads.items():
        text = head + "\n".join(rules)
        loaded = load_text(text)
        wrong = [(d.message, text[d.span.start : d.span.end]) for d in loaded.diagnostics]
        assert loaded.program is not None, wrong
        assert len(loaded.program.rules) == len(rules)


def test_every_example_names_its_entry() -> None:
    for entry in ENTRIES:
        name = entry.other_name or entry.name
        assert name in entry.text.partition("invariant example")[2], entry.qualified


def test_all_that_is_declared_is_listed() -> None:
    program = load([shipped("stdlib")]).program
    assert program is not None
    words, listed = program.vocabulary, {(each.kind, each.qualified) for each in ENTRIES}
    expected = {("context value", each.name) for each in words.context}
    expected |= {("group", each.name) for each in words.groups}
    for kind, owners in (("entity", words.entities), ("event", words.events)):
        declared = [each for each in owners if not getattr(each, "bare", False)]
        expected |= {(kind, each.name) for each in declared}
        expected |= {("field", f"{e.name}.{f.name}") for e in declared for f in e.fields}
    assert expected <= listed


def test_all_words_of_the_language_are_listed() -> None:
    listed = {(each.kind, each.name) for each in ENTRIES}
    tables = {"feature": FEATURES, "fold": FOLDS, "function": FUNCTIONS, "keyword": ACTIONS}
    assert {(kind, name) for kind, table in tables.items() for name in table} <= listed


def test_all_keywords_that_the_grammar_has_in_rules_are_listed() -> None:
    """Units are context values; `steps`, `checks` and `inferred` need no explanation."""
    grammar = shipped("grammars").joinpath("tspec.lark").read_text(encoding="utf-8")
    rules = grammar[
        grammar.index("\ninvariant:") : grammar.index("\n// ", grammar.index("\nelse:"))
    ]
    words = set(re.findall(r'"([a-z]+)"', rules)) - {"invariant", "steps", "checks", "inferred"}
    expressions = grammar[grammar.index("// Expressions") : grammar.index("// What can only")]
    words |= set(re.findall(r'"([a-z]+)"', expressions)) | {"true", "false"}
    assert words <= {each.name for each in ENTRIES if each.kind in ("keyword", "context value")}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("phase", ["context value"]),
        ("dp", ["group"]),
        ("parameters", ["entity"]),
        ("parameter.grad", ["field"]),
        ("optimizer.step", ["event"]),
        ("batch_norms", ["collection"]),
        ("norm", ["feature"]),
        ("min", ["feature", "fold"]),
        ("join", ["event", "function"]),
        ("during", ["keyword"]),
        ("consecutive", ["keyword"]),
    ],
)
def test_explain_answers_for_a_name(name: str, kinds: list[str]) -> None:
    found = named(name, ENTRIES)
    assert [each.kind for each in found] == kinds
    said = CliRunner().invoke(app, ["explain", name])
    assert said.exit_code == 0
    assert all(each.meaning.split()[0] in said.output for each in found if each.meaning)
    assert said.output.count("Example") == len(kinds)


def test_explain_lists_the_fields_of_an_entity_and_of_an_event() -> None:
    """Each with its type, beside its first sentence or, where it is wide, above it."""
    said = CliRunner().invoke(app, ["explain", "batch"]).output
    assert said.partition("\nFields\n")[2].partition("\n\nExample\n")[0] == (
        "  loader: loader         The loader that it came from.\n"
        "  tensors: list<tensor>  The tensors in it, in their order."
    )
    update = CliRunner().invoke(app, ["explain", "optimizer.step"]).output
    assert "\n  lr: float                  The learning rate of its first group" in update
    assert f"\n  unrelated_averages: list<parameter>\n{' ' * 29}Parameters that no" in update
    parameter = CliRunner().invoke(app, ["explain", "parameter"]).output
    assert "(`use std.megatron`)" in parameter
    assert max(map(len, (said + update + parameter).splitlines())) <= 80


def test_explain_lists_no_fields_of_a_value() -> None:
    assert "Fields" not in CliRunner().invoke(app, ["explain", "phase"]).output


def test_a_field_is_found_by_its_own_name() -> None:
    owners = {each.owner for each in named("lr", ENTRIES)}
    assert owners == {"param_group", "optimizer.step"}
    assert named("g.lr", ENTRIES) == named("lr", ENTRIES)
    assert named("optimizer.grad", ENTRIES) == ()


def test_a_variable_may_have_the_name_of_a_field() -> None:
    """`dropout` has a field `p`."""
    said = CliRunner().invoke(app, ["explain", "p.grad"])
    assert said.exit_code == 0, said.output
    assert said.output.startswith("parameter.grad: tensor?")
    of_calls = CliRunner().invoke(app, ["explain", "c.loss"])
    assert of_calls.output.startswith("backward.loss: tensor")  # no context value


def test_a_misspelt_name_is_told_the_likely_one() -> None:
    said = CliRunner().invoke(app, ["explain", "optimizer.stpe"])
    assert said.exit_code == 2
    assert "`optimizer.step`" in said.output
    assert "neither a rule nor a word of rules is called `optimizer.stpe`" in said.output


def test_a_text_of_an_entry_is_a_file() -> None:
    entry = VocabularyEntry(
        "fold", "same", "", "across dp each step expect same(step)", module="std.moe"
    )
    assert entry.text == (
        "edition 2026\n\nmodule checks\n\nuse std.moe\n\ninvariant example {\n"
        "  across dp\n  each step\n  expect same(step)\n  else warn\n}\n"
    )

"""Whatever the text, loading ends with diagnostics and never with a traceback."""

import random
import re

import pytest

from tests.families import family
from tspec.diagnostics import render
from tspec.resolve import load_text
from tspec.resources import shipped
from tspec.source import Source
from tspec.syntax import nodes
from tspec.syntax.parse import parse

FILES = sorted([*shipped("stdlib").glob("*.tspec"), *shipped("specs").rglob("*.tspec")])
TEXTS = [path.read_text(encoding="utf-8") for path in FILES]
TOKEN = re.compile(r'\s+|[A-Za-z_]+|"[^"\n]*"|\d+|[^\sA-Za-z_]')
WORDS = sorted({token for text in TEXTS for token in TOKEN.findall(text) if token.strip()})
HEAD = "edition 2026\n\nmodule fuzz\n\nuse std.torch\n\n"


def expressions():
    """The text of every expression of the shipped rules."""
    found = set()
    for path, text in zip(FILES, TEXTS, strict=True):
        source = Source(str(path), text)
        for node in parse(source).file.walk():
            if isinstance(node, nodes.Expr):
                found.add(source.slice(node.span))
    return sorted(found)


EXPRESSIONS = expressions()
WINDOWS = (
    "each step", "each run", "each epoch every 2 epochs", "before optimizer.step", "after backward",
    "during forward(module: m)", "during clip", "",
)  # fmt: skip
SHAPES = (
    "{a}", "{a} and {b}", "{a} == {b}", "{a} in {b}", "not {a}", "{a} implies {b}", "same({a})", "max({a})",
    "any({a}, over: 3 steps)", "old({a})", "previous({a}) < {b}", "present({a}) and {a} > {b}", "norm({a}) <= {b}",
    "changed({a}) only during {b}", "contains {a}", "{a} before {b}", "[{a}, {b}] == {a}", "{a}[{b}] == 1",
    "count(calls({a})) > 0", "{a}.name == {b}", "parameters(name: {a}) == {b}", "first({a}) is {b}",
    "isinstance({a}, {b})", "divisible({a}, by: {b})", "finite({a})", "{a} + {b} > 0", "zeros(change({a})) < 1",
)  # fmt: skip


def survives(text):
    loaded = load_text(text)
    failed = any(each.severity == "error" for each in loaded.diagnostics)
    assert (loaded.program is None) == failed
    for each in loaded.diagnostics:
        assert render(each)


def rule(rng):
    """A rule of parts that are right by themselves."""
    a, b, c = rng.sample(EXPRESSIONS, 3)
    subject = rng.choice(("for p in parameters", "for c in calls(forward)", f"for p in {c}", ""))
    across = rng.choice(("", "", "across dp", f"across {b}"))
    when = rng.choice(("", f"when {a}", f"when {b}"))
    expect = rng.choice(SHAPES).format(a=a, b=b)
    lines = ("for m in modules", subject, across, rng.choice(WINDOWS), when, f"expect {expect}")
    return "invariant it {\n" + "".join(f"  {line}\n" for line in lines if line) + "}\n"


def mutated(rng):
    """A few declarations of the library with words exchanged, lost and put in."""
    parts = re.split(r"\n\n+", rng.choice(TEXTS))
    tokens = TOKEN.findall("\n\n".join(rng.sample(parts, min(len(parts), 3))))
    for _ in range(rng.randint(1, 5)):
        place = rng.randrange(len(tokens))
        match rng.randrange(3):
            case 0:
                tokens[place] = rng.choice(WORDS)
            case 1:
                tokens[place] = ""
            case 2:
                tokens.insert(place, rng.choice(WORDS))
    return "".join(tokens)


@pytest.mark.parametrize("seed", family(range(6), (), {"0"}))
def test_rules_of_random_parts(seed):
    rng = random.Random(seed)
    survives(HEAD + "\n".join(rule(rng).replace(" it ", f" it{n} ") for n in range(25)))


@pytest.mark.parametrize("seed", family(range(12), {"1"}, {"0"}))
def test_mutated_declarations(seed):
    rng = random.Random(seed)
    survives(HEAD + "\n\n".join(mutated(rng) for _ in range(3)))

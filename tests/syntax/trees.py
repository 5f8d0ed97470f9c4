"""Random trees of every kind of node, as a parser could have built them."""

from __future__ import annotations

from hypothesis import strategies as st

from tspec.syntax import nodes as n
from tspec.syntax.tokens import keywords
from tspec.syntax.unexpected import RESERVED
from tspec.syntax.units import PLURALS

NAMES = ("p", "optimizer", "torch", "parameters", "a_rather_long_name_of_something", "_x1", "E")
SOFT = tuple(sorted(set(keywords().values()) - set(RESERVED)))

texts = st.sampled_from(NAMES) | st.sampled_from(SOFT)
words = st.builds(n.Word, texts)
names = st.builds(n.Name, texts)
strings = st.builds(n.String, st.text(max_size=12))
small = st.integers(0, 10**6)
docs = st.lists(st.sampled_from(["/// What it is.", "// why", "///"]), max_size=2)


def some(strategy, least=0, most=3):
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


def maybe(strategy):
    return st.none() | strategy


def dotted(least=1):
    return st.builds(n.Dotted, some(words, least))


quantities = st.builds(
    n.Quantity, small | st.integers(0, 999).map(lambda i: i + 0.5), st.sampled_from(list(PLURALS))
)
literals = st.one_of(
    st.builds(n.Integer, small),
    st.builds(n.Float, st.floats(0, 1e300, allow_nan=False)),
    st.builds(n.Float, st.just(1e-4), st.sampled_from(["1e-4", "1E-04", "0.0001"])),
    st.builds(n.Percentage, st.sampled_from(["90", "0.5", "100"])),
    quantities,
    strings,
    st.builds(n.Boolean, st.booleans()),
)


def paths(values):
    """Events: expressions that begin with a name."""

    def longer(inner):
        arguments = st.builds(n.Argument, maybe(words), values)
        return st.one_of(
            st.builds(n.Attribute, inner, words),
            st.builds(n.Call, inner, some(arguments)),
            st.builds(n.Index, inner, values),
        )

    return st.recursive(names, longer, max_leaves=3)


ORDERINGS = st.sampled_from([("<", "<="), (">=", ">"), ("<", "<")])
SINGLE = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"]).map(
    lambda sign: (sign,)
)


def larger(inner):
    operands = some(inner, 2)
    arguments = st.builds(n.Argument, maybe(words), inner)
    comparisons = (SINGLE | ORDERINGS).flatmap(
        lambda signs: st.builds(
            n.Comparison, some(inner, len(signs) + 1, len(signs) + 1), st.just(signs)
        )
    )
    return st.one_of(
        st.builds(n.Attribute, inner, words),
        st.builds(n.Call, inner, some(arguments)),
        st.builds(n.Index, inner, inner),
        st.builds(n.List, some(inner)),
        st.builds(n.Set, some(inner)),
        st.builds(n.Negative, inner),
        st.builds(n.Arithmetic, inner, st.sampled_from("+-*/"), inner),
        comparisons,
        st.builds(n.Not, inner),
        st.builds(_flat(n.And), operands),
        st.builds(_flat(n.Or), operands),
        st.builds(n.Implies, inner, inner),
    )


def _flat(node):
    """An And of Ands is one And, as the parser builds it."""

    def build(operands):
        parts = [o.operands if isinstance(o, node) else (o,) for o in operands]
        return node(tuple(operand for part in parts for operand in part))

    return build


expressions = st.recursive(names | literals, larger, max_leaves=8)
postfixes = paths(expressions)
events = paths(literals | names)

types = st.recursive(
    st.builds(n.NamedType, words, st.just(()), st.booleans()) | st.builds(n.Choice, some(words, 2)),
    lambda inner: st.builds(n.NamedType, words, some(inner, 1), st.booleans()),
    max_leaves=3,
)
callables = some(dotted() | dotted().map(lambda d: n.Dotted((*d.parts, n.Word("*")))), 1)
fields = st.builds(n.Field, words, types, maybe(expressions))
entries = st.builds(n.Entry, words, some(expressions, 1))

thinning = st.none() | st.builds(n.Every, quantities) | st.just(n.Once())
windows = st.one_of(
    st.builds(n.Instant, st.sampled_from(["before", "after"]), events, thinning),
    st.builds(n.During, events, thinning),
    st.builds(
        n.Each, st.sampled_from(["step", "microbatch", "epoch", "run"]).map(n.Word), thinning
    ),
)
claims = st.one_of(
    expressions,
    st.builds(n.Ordered, some(events, 2)),
    st.builds(n.Contains, events),
    st.builds(n.OnlyDuring, postfixes, some(events, 1)),
)
often = st.one_of(
    st.none(), st.builds(n.Consecutive, small), st.builds(n.Frequent, small, quantities)
)
actions = st.sampled_from(["warn", "skip", "rollback", "stop", "raise"]).map(n.Word)
rule_settings = st.builds(n.RuleSetting, dotted(), actions | st.just(n.Word("off")))
invariants = st.builds(
    n.Invariant,
    words,
    some(st.builds(n.For, words, postfixes)),
    maybe(st.builds(n.Across, some(postfixes, 1))),
    maybe(windows),
    maybe(st.builds(n.When, expressions)),
    st.builds(n.Expect, claims),
    maybe(st.builds(n.Else, some(st.builds(n.Response, actions, often), 1))),
    maybe(st.builds(n.Inferred, some(entries))),
    st.booleans(),
)

terms = st.builds(n.SizeName, texts) | st.builds(n.SizeNumber, small)
splits = st.builds(n.Split, words, maybe(words))


def dimensions(sizes):
    return st.builds(n.Dimension, sizes, some(terms), some(splits))


def inside(sizes):
    products = st.builds(n.Product, some(dimensions(sizes), 1))
    return products | st.builds(n.SizeSum, some(terms | products, 2))


sizes = st.recursive(terms | st.builds(n.SizeSum, some(terms, 2)), inside, max_leaves=4)
shapes = st.builds(n.Shape, some(dimensions(sizes))) | st.builds(
    n.Flat, some(splits, 1), some(terms)
)
kinds = st.sampled_from(
    [
        "param",
        "grad",
        "state",
        "input",
        "input_grad",
        "output",
        "output_grad",
        "buffer",
    ]
).map(n.Word)
places = st.builds(
    n.Place, kinds, strings, shapes, some(words), some(words), maybe(st.builds(n.When, expressions))
)
layout_clauses = st.one_of(
    places,
    st.builds(n.Tied, strings, strings),
    st.builds(n.Stage, small, some(strings, 1), maybe(small)),
)

settings = some(st.builds(n.Setting, words, expressions))
runs = st.builds(n.Run, quantities, maybe(events))
equivalences = st.builds(
    lambda name, *clauses: n.Equivalence(name, tuple(c for group in clauses for c in group)),
    words,
    some(st.builds(n.UsesLayout, words), 0, 1),
    some(st.builds(n.Reference, settings), 0, 1),
    some(st.builds(n.Candidate, settings), 0, 1),
    some(st.builds(n.Sweep, words, expressions)),
    some(st.builds(n.Require, expressions)),
    some(st.builds(n.EqualWhen, expressions), 0, 1),
    some(st.builds(n.Cover, st.sampled_from(["all", "pairs", "triples"]).map(n.Word)), 0, 1),
    some(runs, 1, 1),
    some(st.builds(n.GeneratedInput, strings, expressions)),
    some(st.builds(n.Compare, some(words, 1)), 1, 1),
    some(st.builds(n.Within, expressions), 1, 1),
    some(st.builds(n.Store, words), 0, 1),
    some(st.just(n.Localize()), 0, 1),
)
replays = st.builds(
    lambda name, *clauses: n.Replay(name, tuple(c for group in clauses for c in group)),
    words,
    some(st.builds(n.Fix, some(words, 1)), 0, 1),
    some(st.builds(n.Save, some(words, 1)), 0, 1),
    some(runs, 1, 1),
    some(st.builds(n.Resume, small), 0, 1),
    some(st.builds(n.ExpectAll, some(expressions, 1)), 1, 1),
)

happenings = st.recursive(
    st.builds(n.Happening, events) | st.builds(n.Change, events, expressions),
    lambda inner: (
        st.builds(n.Happening, events, some(inner, 1))
        | st.builds(n.RankScript, some(small, 1), some(inner))
    ),
    max_leaves=4,
)
steps = st.builds(lambda a, b, inside: n.StepScript(a, b, inside), small, small, some(happenings))
scripts = st.builds(n.Events, some(steps), maybe(small)) | st.builds(
    n.Events, some(steps), st.none(), maybe(words)
)
violates = st.builds(
    n.Violates, words, maybe(st.builds(n.At, small, small)), maybe(small), maybe(strings)
)
results = some(violates | st.builds(n.Passes, maybe(words)), 1)
tests = st.builds(
    lambda title, given, results: n.Test(title, (given, *results)),
    strings,
    st.builds(n.UsesTrace, strings) | scripts,
    results,
)

declarations = st.one_of(
    st.builds(n.Let, words, expressions),
    st.builds(n.Reject, words, strings),
    st.builds(n.ContextDeclaration, some(st.builds(n.ContextField, dotted(), types))),
    st.builds(n.Group, words, st.just(()) | callables, st.booleans()),
    st.builds(n.Entity, words, some(fields), st.booleans()),
    st.builds(n.Event, dotted(), callables, some(fields), st.booleans()),
    invariants,
    st.builds(n.Mesh, words, some(entries), some(st.builds(n.Regroup, words, some(entries)))),
    st.builds(n.Dims, words, some(entries)),
    st.builds(n.Layout, words, words, some(layout_clauses), some(words)),
    equivalences,
    replays,
    tests,
)

files = st.builds(
    n.File,
    st.just(n.Edition(2026)),
    maybe(st.builds(n.Module, dotted(), maybe(strings))),
    some(st.builds(n.Use, dotted(), maybe(strings), maybe(words), some(rule_settings))),
    some(declarations, 0, 4),
)

"""The outline of a file as written: its uses, declarations, names, comments and canonical text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from tspec.resolve.modules.files import Unit
from tspec.resolve.names.vocabulary import plural
from tspec.source import Source, Span
from tspec.syntax import nodes
from tspec.syntax.format_declarations import declaration, entry
from tspec.syntax.parse import parse
from tspec.syntax.printer import render

Kind = Literal[
    "context", "entity", "event", "group", "let", "invariant", "reject", "mesh", "dims", "layout",
    "equivalence", "replay", "test",
]  # fmt: skip
_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}

WIDTH = 100
ONE_LINE = 1000
"""A width at which no clause takes two lines."""


@dataclass(frozen=True, slots=True)
class SpannedName:
    """A word or dotted name, and where it stands."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Documentation:
    """The `///` lines above a declaration: their text, and where each stands."""

    text: str
    lines: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class UseLine:
    """`use a.b as c with rule: off`."""

    module: SpannedName
    alias: SpannedName | None
    settings: tuple[SpannedName, ...]
    """The rules that it sets."""
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class OutlinedDeclaration:
    """One declaration as it is written."""

    kind: Kind
    name: SpannedName
    """Its name; the title of a test, the keyword of `context`."""
    span: Span
    documentation: Documentation | None
    declares: frozenset[str]
    """Names that other declarations can use."""
    reads: frozenset[str]
    """Every word in it that may name something, and every dotted path."""
    words: tuple[SpannedName, ...]
    """The names that it introduces: its own, the parts of an event's, `for` variables."""
    fractions: tuple[tuple[float, Span], ...]
    """Numbers with a decimal point or a percent sign."""
    draft: bool
    extends: bool
    """True if it extends a declaration."""
    because: str
    """The reason of a `reject`."""


@dataclass(frozen=True, slots=True)
class Outline:
    """The uses and declarations of a file."""

    source: Source
    key: str
    """Tells files apart that have no module line."""
    module: SpannedName | None
    documentation: Documentation | None
    """The documentation of the module."""
    uses: tuple[UseLine, ...]
    declarations: tuple[OutlinedDeclaration, ...]

    @property
    def name(self) -> str:
        """The module's name, or nothing."""
        return self.module.text if self.module else ""

    @property
    def is_pack(self) -> bool:
        """True if the file has no rules of its own. It then stands for the rules of the modules
        that it uses.
        """
        return bool(self.uses) and not any(self.of("invariant"))

    def of(self, kind: Kind) -> Iterator[OutlinedDeclaration]:
        """Its declarations of a kind."""
        return (each for each in self.declarations if each.kind == kind)


def outline(unit: Unit) -> Outline:
    """The outline of a file that was read."""
    return _outline(unit.source, unit.file, unit.key)


def outline_of_text(source: Source) -> Outline:
    """The outline of a text, as far as it can be parsed."""
    return _outline(source, parse(source).file, source.path)


def _outline(source: Source, file: nodes.File, key: str) -> Outline:
    module = file.module
    return Outline(
        source,
        key,
        SpannedName(module.name.text, module.name.span) if module else None,
        _documentation(module) if module else None,
        tuple(map(_use, file.uses)),
        tuple(map(_declared, file.declarations)),
    )


def _use(node: nodes.Use) -> UseLine:
    alias = SpannedName(node.alias.text, node.alias.span) if node.alias else None
    settings = tuple(SpannedName(each.rule.text, each.rule.span) for each in node.settings)
    return UseLine(SpannedName(node.module.text, node.module.span), alias, settings, node.span)


def _declared(node: nodes.Declaration) -> OutlinedDeclaration:
    kind = _KINDS[nodes.keyword(node)]
    return OutlinedDeclaration(
        kind,
        _name(node),
        node.span,
        _documentation(node),
        frozenset(_declares(node)),
        frozenset(_reads(node.value if isinstance(node, nodes.Let) else node)),
        tuple(SpannedName(each.text, each.span) for each in _words(node)),
        tuple(
            (each.value, each.span)
            for each in node.walk()
            if isinstance(each, nodes.Float | nodes.Percentage)
        ),
        getattr(node, "draft", False),
        getattr(node, "extend", False),
        node.because.value if isinstance(node, nodes.Reject) else "",
    )


def _name(node: nodes.Declaration) -> SpannedName:
    if isinstance(node, nodes.Test):
        return SpannedName(node.title.value, node.title.span)
    name = getattr(node, "name", None)
    return (
        SpannedName(name.text, name.span) if name is not None else SpannedName("context", node.span)
    )


def _documentation(node: nodes.Node) -> Documentation | None:
    lines = tuple(each.span for each in node.trivia.leading if each.is_doc)
    return Documentation(node.doc or "", lines) if lines else None


def _declares(node: nodes.Declaration) -> Iterator[str]:
    match node:
        case nodes.ContextDeclaration(fields=fields):
            yield from (each.name.text for each in fields)
        case nodes.Entity(name=name, extend=False):
            yield from (name.text, plural(name.text))
        case nodes.Event(extend=True) | nodes.Entity() | nodes.Group(extend=True):
            return
        case nodes.Test() | nodes.Reject():
            return
        case _:
            yield _name(node).text


def _reads(node: nodes.Node) -> Iterator[str]:
    for each in node.walk():
        match each:
            case nodes.Name(text=text) | nodes.Word(text=text):
                yield text
            case nodes.Attribute():
                yield nodes.dotted_text(each) or ""
            case nodes.Dotted(text=text):
                yield text


def _words(node: nodes.Declaration) -> Iterator[nodes.Word]:
    match node:
        case nodes.Event(name=dotted):
            yield from dotted.parts
        case nodes.Invariant(name=name, subjects=subjects):
            yield name
            yield from (each.variable for each in subjects)
        case nodes.ContextDeclaration() | nodes.Test() | nodes.Reject():
            return
        case _:
            word = getattr(node, "name", None)
            assert isinstance(word, nodes.Word)
            yield word


# --- comments -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpannedComment:
    """A comment that is no documentation, and the text that it is about."""

    text: str
    span: Span
    about: Span


def comments(unit: Unit) -> Iterator[SpannedComment]:
    """The comments of a file, in the order of its tree."""
    for node in unit.file.walk():
        trivia = node.trivia
        pairs = [(each, node.span) for each in trivia.leading]
        pairs += [(each, node.span.to(each.span)) for each in trivia.trailing]
        pairs += [(each, each.span) for each in (*trivia.opening, *trivia.inner)]
        for comment, about in pairs:
            if not comment.is_doc:
                yield SpannedComment(comment.text, comment.span, about)


# --- canonical text -----------------------------------------------------------------------------


def canonical_text(unit: Unit, span: Span) -> str:
    """The declaration that stands at a span, or whose name does, in canonical form without `///`."""
    return render(declaration(_at(unit, span)), WIDTH)


def canonical_lines(unit: Unit, span: Span) -> dict[str, tuple[str, Span]]:
    """The canonical text of each entry of a mesh or `dims`, or clause of a layout or equivalence, by its key."""
    node = _at(unit, span)
    match node:
        case nodes.Mesh(entries=entries, regroups=regroups):
            lines: list[nodes.Entry | nodes.Regroup] = [*entries, *regroups]
            return {_key(each): (_line(each), each.span) for each in lines}
        case nodes.Dims(entries=entries):
            return {_key(each): (_line(each), each.span) for each in entries}
        case nodes.Layout(clauses=clauses):
            return {_clause_key(each): (_clause(node, each), each.span) for each in clauses}
        case nodes.Equivalence(clauses=clauses):
            return {_trial_key(each): (_trial_clause(node, each), each.span) for each in clauses}
    return {}


def _at(unit: Unit, span: Span) -> nodes.Declaration:
    return next(each for each in unit.file.declarations if span in (each.span, _name(each).span))


def _key(node: nodes.Entry | nodes.Regroup) -> str:
    return node.key.text if isinstance(node, nodes.Entry) else f"regroup {node.name.text}"


def _line(node: nodes.Entry | nodes.Regroup) -> str:
    if isinstance(node, nodes.Entry):
        return render(entry(node), ONE_LINE)
    inside = ", ".join(_line(each) for each in node.entries)
    return f"regroup {node.name.text} {{ {inside} }}"


def _clause_key(clause: nodes.Place | nodes.Tied | nodes.Stage) -> str:
    match clause:
        case nodes.Place():  # several may be of one pattern
            return f"place {clause.span.start}"
        case nodes.Tied():
            return f"tied {clause.left.value} {clause.right.value}"
        case nodes.Stage():
            return f"stage {clause.number} {clause.chunk}"


def _clause(layout: nodes.Layout, clause: nodes.Place | nodes.Tied | nodes.Stage) -> str:
    return _inside(replace(layout, clauses=(clause,)))


def _inside(one: nodes.Layout | nodes.Equivalence) -> str:
    """A declaration's clauses in canonical form, as one line."""
    return " ".join(line.strip() for line in render(declaration(one), ONE_LINE).splitlines()[1:-1])


_TRIAL_KEYS: Mapping[type[nodes.Clause], str] = {
    nodes.UsesLayout: "layout",
    nodes.Reference: "reference",
    nodes.Candidate: "candidate",
    nodes.Cover: "cover",
    nodes.Run: "run",
    nodes.Compare: "compare",
    nodes.Within: "within",
    nodes.Store: "store",
    nodes.Localize: "localize",
}
"""Clauses that an equivalence has once each."""


def _trial_key(clause: nodes.Clause) -> str:
    match clause:
        case nodes.Sweep():
            return f"sweep {clause.name.text}"
        case nodes.Require():
            return f"require at {clause.span.start}"
        case nodes.GeneratedInput():
            return f"input {clause.name.value}"
        case nodes.EqualWhen():
            return f"equal when at {clause.span.start}"
    return _TRIAL_KEYS[type(clause)]


def _trial_clause(trial: nodes.Equivalence, clause: nodes.Clause) -> str:
    return _inside(replace(trial, clauses=(clause,)))

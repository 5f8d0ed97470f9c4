"""Puts the comments and empty lines of a text back into its tree.

A comment on a line of its own belongs to the next node; one at the end of a line to the node before
it; one after an opening brace, or before a closing one, to the block. Where a node cannot show a
comment inside (in the middle of `a.b`), the comment goes to the smallest enclosing node that can.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from lark import Token

from tspec.diagnostics import Diagnostic
from tspec.source import Source, Span
from tspec.syntax import nodes
from tspec.syntax.tokens import OPENING, span_of

_AnyNode = TypeVar("_AnyNode", bound=nodes.Node)

_COMMENT = re.compile(r"//[^\n]*")

BRACED = (
    *(
        nodes.ContextDeclaration,
        nodes.Entity,
        nodes.Event,
        nodes.Invariant,
        nodes.Inferred,
        nodes.Mesh,
    ),
    *(nodes.Regroup, nodes.Dims, nodes.Layout, nodes.Equivalence, nodes.Reference),
    *(nodes.Candidate, nodes.Replay, nodes.Test, nodes.Events, nodes.StepScript),
    *(nodes.RankScript, nodes.Happening),
)
"""Nodes with a block of lines in braces."""

BRACKETED = (nodes.List, nodes.Set, nodes.Call, nodes.Shape, nodes.Product)
"""Nodes that can have one element a line."""

CHAINS = (*(nodes.And, nodes.Or, nodes.Implies, nodes.Comparison, nodes.Arithmetic, nodes.Ordered),)
"""Nodes that can break before each operator."""

VALUES = (*(nodes.Let, nodes.When, nodes.Expect, nodes.Require, nodes.Within, nodes.EqualWhen),)
"""Nodes whose value can begin on a line of its own."""

LISTED = (
    *(nodes.Across, nodes.Compare, nodes.Else, nodes.Entry, nodes.ExpectAll, nodes.Fix),
    *(nodes.Save, nodes.Stage),
)
"""Nodes with a list that begins on their first line and may go on below."""

HOSTS = (nodes.File, nodes.Use, *BRACED, *BRACKETED, *CHAINS, *VALUES, *LISTED)
"""Nodes between whose children a comment can stand."""

LINES = (
    *(nodes.Edition, nodes.Module, nodes.Use, nodes.Declaration, nodes.Clause, nodes.Entry),
    *(nodes.ContextField, nodes.Field, nodes.Regroup, nodes.Setting, nodes.StepScript),
    *(nodes.Happening, nodes.Change, nodes.RankScript),
)
"""Nodes on lines of their own, between which an empty line may stand."""

DOCUMENTED = (
    *(nodes.Module, nodes.Declaration, nodes.ContextField, nodes.Field, nodes.Entry),
    *(nodes.Regroup, nodes.Place, nodes.Tied, nodes.Stage),
)
"""Nodes that `///` documents."""


@dataclass(slots=True)
class _Slots:
    leading: list[nodes.Comment] = field(default_factory=list)
    trailing: list[nodes.Comment] = field(default_factory=list)
    opening: list[nodes.Comment] = field(default_factory=list)
    inner: list[nodes.Comment] = field(default_factory=list)


def attach(
    file: nodes.File, comments: Sequence[Token], source: Source
) -> tuple[nodes.File, list[Diagnostic]]:
    """The file with its comments and empty lines, and a warning for each `///` without use."""
    attaching = _Attaching(source)
    for token in comments:
        attaching.place(file, token)
    return attaching.rebuilt(file), attaching.found


@dataclass(frozen=True, slots=True)
class _Attaching:
    """The assignment of comments to nodes, by the `id` of nodes of a tree that stays alive
    meanwhile.
    """

    source: Source
    children: dict[int, list[nodes.Node]] = field(default_factory=dict)
    slots: dict[int, _Slots] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    found: list[Diagnostic] = field(default_factory=list)

    def place(self, file: nodes.File, token: Token) -> None:
        """Find the node and the side of it for one comment."""
        span = span_of(token)
        own_line = _begins_line(self.source, span.start)
        text = str(token).rstrip()
        comment = nodes.Comment(text, own_line and _blank_above(self.source, span.start), span)
        path, side = self._target(self._path(file, span), span, own_line)
        if side == "trailing" and id(path[-1]) in self.slots and self.slots[id(path[-1])].trailing:
            # A line ends in one comment.
            path, side = self._outermost(path, path[-1].span, own_line=True)
        self.touched.update(id(node) for node in path)
        getattr(self.slots.setdefault(id(path[-1]), _Slots()), side).append(comment)
        if comment.is_doc and not (side == "leading" and isinstance(path[-1], DOCUMENTED)):
            self._useless(span)

    def _path(self, file: nodes.File, span: Span) -> list[nodes.Node]:
        """The nodes around a comment, from the file to the smallest."""
        path: list[nodes.Node] = [file]
        while True:
            children = self._children(path[-1])
            index = _around(children, span)
            if index == 0 or children[index - 1].span.end <= span.start:
                return path
            path.append(children[index - 1])

    def _target(
        self, path: Sequence[nodes.Node], span: Span, own_line: bool
    ) -> tuple[Sequence[nodes.Node], str]:
        """The path to the node that a comment goes to, and the side of that node."""
        depth = max(index for index, node in enumerate(path) if isinstance(node, HOSTS))
        host = path[depth]
        inside = path[depth + 1] if depth + 1 < len(path) else None
        if inside is not None and not _is_head(host, inside, own_line):
            return self._outermost(path[: depth + 2], span, own_line)
        children = self._children(host)
        index = _around(children, span)
        before = children[index - 1] if index > 0 else None
        after = children[index] if index < len(children) and inside is None else None
        path = path[: depth + 1]
        closes = isinstance(host, (nodes.File, *BRACED, *BRACKETED)) and not _bodiless(host)
        if own_line:
            if after is not None and not _is_head(host, after, above=True):
                return self._outermost([*path, after], span, own_line)
            last = closes and after is None and inside is None
            return (path, "inner") if last else self._outermost(path, span, own_line)
        opened = self._line_up_to(span.start).rstrip().endswith(tuple(OPENING))
        if closes and (before is None or opened or _is_head(host, before, above=False)):
            return path, "opening" if not isinstance(host, nodes.File) else "inner"
        if before is not None and not _is_head(host, before, above=False):
            return self._outermost([*path, before], span, own_line)
        if after is not None and not _is_head(host, after, above=True):
            return self._outermost([*path, after], span, own_line=True)
        return self._outermost(path, span, own_line)

    def _outermost(
        self, path: Sequence[nodes.Node], span: Span, own_line: bool
    ) -> tuple[Sequence[nodes.Node], str]:
        """The way to the largest node that begins, or ends, where the last of a path does.

        Parentheses do not count, as they may go. A comment of its own line goes further up to
        where it can stand above the node.
        """
        last = len(path) - 1
        while last > 1:
            node, target = path[last - 1], path[last]
            if own_line:
                hosts = isinstance(node, HOSTS) and not _is_head(node, target, above=True)
                goes_on = self._same_edge(node, node.span.start, span.start, "(") or not hosts
            else:
                goes_on = self._same_edge(node, target.span.end, node.span.end, ")")
            if not goes_on:
                break
            last -= 1
        return path[: last + 1], "leading" if own_line else "trailing"

    def _same_edge(self, node: nodes.Node, start: int, end: int, sign: str) -> bool:
        """True if only comments, and parentheses that belong to no node, lie between two places."""
        if isinstance(node, (*BRACED, *BRACKETED)) and end > start:
            return False
        between = _COMMENT.sub("", self.source.text[start:end])
        return not between.strip(f"{sign} \t\r\n")

    def _line_up_to(self, offset: int) -> str:
        return self.source.text[self.source.text.rfind("\n", 0, offset) + 1 : offset]

    def _children(self, node: nodes.Node) -> list[nodes.Node]:
        """The nodes below one, in the order of the text, sorted once."""
        if id(node) not in self.children:
            self.children[id(node)] = _children(node)
        return self.children[id(node)]

    def _useless(self, span: Span) -> None:
        self.found.append(
            Diagnostic(
                "TS0012",
                "`///` documents the declaration or field below it, and here is none",
                Span(span.start, span.start + 3),
                self.source,
                hint="write a comment with `//`",
                severity="warning",
            )
        )

    def rebuilt(self, node: _AnyNode) -> _AnyNode:
        """A node with its trivia, and all below that have some."""
        if id(node) not in self.touched and not isinstance(node, (nodes.File, *LINES, *BRACED)):
            return node
        changes: dict[str, object] = {}
        for each in fields(node):
            value = getattr(node, each.name)
            if isinstance(value, nodes.Node):
                new: object = self.rebuilt(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], nodes.Node):
                new = tuple(self.rebuilt(item) for item in value)
                new = value if all(a is b for a, b in zip(new, value, strict=True)) else new
            else:
                continue
            if new is not value:
                changes[each.name] = new
        trivia = self._trivia(node)
        if trivia != nodes.NO_TRIVIA:
            changes["trivia"] = trivia
        return replace(node, **changes) if changes else node  # type: ignore[arg-type]

    def _trivia(self, node: nodes.Node) -> nodes.Trivia:
        start = node.span.start
        blank = (
            isinstance(node, LINES)
            and _begins_line(self.source, start)
            and _blank_above(self.source, start)
        )
        slots = self.slots.get(id(node))
        if slots is None:
            return nodes.Trivia(blank_before=True) if blank else nodes.NO_TRIVIA
        return nodes.Trivia(
            tuple(slots.leading),
            tuple(slots.trailing),
            tuple(slots.opening),
            tuple(slots.inner),
            blank,
        )


def _begins_line(source: Source, offset: int) -> bool:
    begin = source.text.rfind("\n", 0, offset) + 1
    return not source.text[begin:offset].strip()


def _blank_above(source: Source, offset: int) -> bool:
    """True if the line above that of an offset is empty."""
    end = source.text.rfind("\n", 0, offset)
    if end < 0:
        return False
    return not source.text[source.text.rfind("\n", 0, end) + 1 : end].strip()


def _children(node: nodes.Node) -> list[nodes.Node]:
    return sorted(node.children(), key=lambda child: child.span.start)


def _around(children: Sequence[nodes.Node], span: Span) -> int:
    """The number of children that begin before a comment."""
    return bisect_right(children, span.start, key=lambda child: child.span.start)


def _is_head(host: nodes.Node, child: nodes.Node, above: bool) -> bool:
    """True if a child stands at the beginning of its host, before the host's content.

    `above`: a comment is to stand above the child. It cannot stand above the first element of a
    list without a bracket.
    """
    if isinstance(host, LISTED):
        items = [each for each in _children(host) if each is not getattr(host, "key", None)]
        return child is getattr(host, "key", None) or (above and child is items[0])
    if isinstance(host, nodes.Use):
        return not isinstance(child, nodes.RuleSetting)
    if isinstance(host, nodes.Event):
        return child is host.name or child is host.callables[0 if above else -1]
    if isinstance(host, nodes.Call):
        return child is host.function
    if isinstance(host, nodes.Happening):
        return child is host.event
    return isinstance(child, nodes.Word) or (isinstance(host, nodes.Test) and child is host.title)


def _bodiless(host: nodes.Node) -> bool:
    """True if a node that can have a block has none in the text."""
    return (isinstance(host, nodes.Event) and not host.fields) or (
        isinstance(host, nodes.Happening) and not host.inside
    )

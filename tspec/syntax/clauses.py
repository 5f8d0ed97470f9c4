"""The clauses of a block: their order, the number of times that each may occur, and which are
required.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tspec.diagnostics import Diagnostic, Related
from tspec.source import Source
from tspec.syntax import nodes


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot of a block: the kinds of clauses in it, and its name in messages."""

    kinds: tuple[type[nodes.Node], ...]
    name: str
    several: bool = False
    needed: bool = False


ORDERS: dict[str, tuple[Slot, ...]] = {
    "invariant": (
        Slot((nodes.For,), "for", several=True),
        Slot((nodes.Across,), "across"),
        Slot((nodes.Instant, nodes.During, nodes.Each), "before, after, during or each"),
        Slot((nodes.When,), "when"),
        Slot((nodes.Expect,), "expect", needed=True),
        Slot((nodes.Else,), "else"),
        Slot((nodes.Inferred,), "inferred"),
    ),
    "equivalence": (
        Slot((nodes.UsesLayout,), "layout"),
        Slot((nodes.Reference,), "reference"),
        Slot((nodes.Candidate,), "candidate"),
        Slot((nodes.Sweep,), "sweep", several=True),
        Slot((nodes.Require,), "require", several=True),
        Slot((nodes.EqualWhen,), "equal when"),
        Slot((nodes.Cover,), "cover"),
        Slot((nodes.Run,), "run", needed=True),
        Slot((nodes.GeneratedInput,), "input", several=True),
        Slot((nodes.Compare,), "compare", needed=True),
        Slot((nodes.Within,), "within", needed=True),
        Slot((nodes.Store,), "store"),
        Slot((nodes.Localize,), "localize by rewriting inputs"),
    ),
    "replay": (
        Slot((nodes.Fix,), "fix"),
        Slot((nodes.Save,), "save"),
        Slot((nodes.Run,), "run", needed=True),
        Slot((nodes.Resume,), "resume"),
        Slot((nodes.ExpectAll,), "expect", needed=True),
    ),
    "test": (
        Slot((nodes.UsesTrace, nodes.Events), "trace or events", needed=True),
        Slot((nodes.Violates, nodes.Passes), "violates or passes", several=True, needed=True),
    ),
}
"""The clauses of each kind of block, in order."""

KEYWORDS: dict[str, tuple[str, ...]] = {
    "invariant": (
        *("for", "across", "before", "after", "during", "each"),
        *("when", "expect", "else", "inferred"),
    ),
    "equivalence": (
        *("layout", "reference", "candidate", "sweep", "require", "equal", "cover"),
        *("run", "input", "compare", "within", "store", "localize"),
    ),
    "replay": ("fix", "save", "run", "resume", "expect"),
    "test": ("trace", "events", "violates", "passes"),
    "layout": (
        *("param", "grad", "state", "input", "input_grad", "output", "output_grad"),
        *("buffer", "tied", "stage"),
    ),
}
"""The words that begin the clauses of a block, in order."""


def check(
    block: str, name: nodes.Node, clauses: Sequence[nodes.Node], source: Source
) -> Iterator[Diagnostic]:
    """Errors in the order and number of a block's clauses."""
    order = ORDERS[block]
    last: tuple[int, nodes.Node] | None = None
    seen: dict[int, nodes.Node] = {}
    for clause in clauses:
        index = next(i for i, place in enumerate(order) if isinstance(clause, place.kinds))
        place = order[index]
        if index in seen and not place.several:
            yield _twice(block, place, clause, seen[index], source)
        elif last is not None and index < last[0]:
            yield _out_of_order(block, place, clause, (order[last[0]], last[1]), source)
        else:
            last = index, clause
        seen.setdefault(index, clause)
    for index, place in enumerate(order):
        if place.needed and index not in seen:
            message = f"this {block} has no {_quoted(place.name)}"
            yield Diagnostic("TS0009", message, name.span, source)


def _twice(
    block: str, place: Slot, clause: nodes.Node, first: nodes.Node, source: Source
) -> Diagnostic:
    hint = "join the conditions with `and`" if place.name == "when" else None
    return Diagnostic(
        "TS0008",
        f"this {block} already has {_quoted(place.name)}",
        clause.span,
        source,
        (Related(first.span, "here"),),
        hint,
    )


def _out_of_order(
    block: str, place: Slot, clause: nodes.Node, above: tuple[Slot, nodes.Node], source: Source
) -> Diagnostic:
    higher, other = above
    return Diagnostic(
        "TS0007",
        f"`{source.slice(clause.span).split()[0]}` stands above {_quoted(higher.name)}, so that"
        f" every {block} reads in one order",
        clause.span,
        source,
        (Related(other.span, f"move it above {_quoted(higher.name)}"),),
        f"the order is {'; '.join(p.name for p in ORDERS[block])}",
    )


def _quoted(names: str) -> str:
    """`` `before`, `after` or `each` `` for `before, after or each`."""
    if names.startswith(("equal ", "localize ")):
        return f"`{names}`"
    *front, last = names.replace(" or ", ", ").split(", ")
    return f"{', '.join(f'`{name}`' for name in front)} or `{last}`" if front else f"`{last}`"

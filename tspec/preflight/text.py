"""The text of a preflight: collectives of a rank's first step by axis, its memory, and deviations
from the layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tspec.folding import FoldedLine
from tspec.layout.ranks import coordinates_of
from tspec.layout.text import ranks_text
from tspec.preflight.check import Problem
from tspec.preflight.facts import Collective, RankFacts
from tspec.resolve.program.sharding import LayoutDeclaration
from tspec.trace.sizes import in_words


def rank_text(layout: LayoutDeclaration, facts: RankFacts) -> list[FoldedLine]:
    """Lines: collectives of the first step, by axis and pass, and bytes by kind."""
    lines = [FoldedLine(f"layout {layout.name}: rank {facts.rank} of {facts.world}")]
    if facts.waits:
        lines.append(FoldedLine(_waits_text(facts.waits), 2, 4))
    elif not facts.updated:
        said = "no update: collectives are those of the whole script, sums are not judged"
        lines.append(FoldedLine(said, 2, 4))
    lines += [FoldedLine(each, 2, 4) for each in _collectives(layout, facts)]
    held = ", ".join(f"{kind} {in_words(size)}" for kind, size in facts.memory.items())
    return [*lines, FoldedLine(f"memory: {held}", 2, 4)]


def _waits_text(source: str) -> str:
    return (
        f"the step ends where it waits for an object of {source}, which sends none: nothing after "
        "it is seen, sums are not judged"
    )


def problems_text(problems: Iterable[Problem]) -> list[FoldedLine]:
    """A line for each problem, with the ranks that have it."""
    ranks: dict[tuple[str, str], list[int]] = {}
    for each in problems:
        ranks.setdefault((each.name, each.what), []).append(each.rank)
    return [FoldedLine(f"{ranks_text(of)}: {name}: {what}") for (name, what), of in ranks.items()]


def _collectives(layout: LayoutDeclaration, facts: RankFacts) -> Iterator[str]:
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for each in facts.collectives:
        key = each.op, _axes(layout, each), _pass(each)
        calls, elements = found.get(key, (0, 0))
        found[key] = calls + each.calls, elements + each.elements
    for (op, axes, when), (calls, elements) in found.items():
        number = f"{calls:,} call{'' if calls == 1 else 's'}"
        yield f"{op} over {axes}, {when}: {number}, {elements:,} elements"


def _axes(layout: LayoutDeclaration, collective: Collective) -> str:
    places = [coordinates_of(layout.mesh, rank) for rank in collective.ranks]
    own = [axis for axis, _ in layout.mesh.axes if len({each[axis] for each in places}) > 1]
    return ", ".join(own) or f"{len(collective.ranks)} ranks"


def _pass(collective: Collective) -> str:
    if collective.where == "backward":
        return "in the backward pass"
    return "in modules" if collective.where else "outside of modules"

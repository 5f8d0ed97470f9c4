"""What a rank's first step took: its collectives by axis, and its memory."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.layout.ranks import coordinates_of
from tspec.preflight.facts import Collective, RankFacts
from tspec.resolve.program.sharding import LayoutDeclaration
from tspec.trace.sizes import in_words


def rank_text(layout: LayoutDeclaration, facts: RankFacts) -> list[str]:
    """Lines: collectives of the first step, by axis and pass, and bytes by kind."""
    lines = [f"layout {layout.name}: rank {facts.rank} of {facts.world}"]
    if not facts.updated:
        lines.append("  no update: collectives are those of the whole script, sums are not judged")
    lines += [f"  {each}" for each in _collectives(layout, facts)]
    held = ", ".join(f"{kind} {in_words(size)}" for kind, size in facts.memory.items())
    lines.append(f"  memory: {held}")
    return lines


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

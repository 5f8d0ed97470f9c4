"""The ranks of an instance: the group of its `across` clause.

Page: "Instances", the lines on `across`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tspec.check.interpret.expressions import evaluate
from tspec.check.interpret.frames import EvaluationContext, LocalInstance
from tspec.check.interpret.timeline import Timeline
from tspec.reasons import no_group
from tspec.resolve.program.queries import group_names
from tspec.resolve.program.rules import Axis, Rule

Ranks = tuple[int, ...]


def group_of(
    rule: Rule, local: LocalInstance, lines: Mapping[int, Timeline], world: int
) -> tuple[Ranks, str]:
    """The ranks of an instance in order, and if there is no group to look across, why.

    Without `across`, or without a group, it is the rank alone.
    """
    rank = local.line.rank
    if not rule.across:
        return (rank,), ""
    frame = EvaluationContext(local.reading())
    axes: list[str] = []
    reached: set[int] = set()
    for clause in rule.across:
        found = clause.name if isinstance(clause, Axis) else evaluate(clause.value, frame)
        if isinstance(found, str):
            axes.append(found)
        elif isinstance(found, tuple | frozenset):
            reached |= {each for each in found if isinstance(each, int)}
    moment = frame.moment
    assert moment is not None
    for axis in axes:
        reached |= set(_on_axis(local.line, axis, moment.seq, world))
    if len(rule.across) > 1:
        reached = _connected(rank, reached, axes, lines, world)
    reached |= {rank} if reached else set()
    if len(reached) < 2:
        return (rank,), no_group(group_names(rule))
    return tuple(sorted(reached)), ""


def _on_axis(line: Timeline, axis: str, seq: int, world: int) -> Ranks:
    """A rank's group on an axis at an instant; none where the axis is unknown there."""
    if axis == "world":
        return tuple(range(world))
    found = line.value("group", axis, "ranks", seq)
    if not isinstance(found, tuple | frozenset):
        return ()
    return tuple(each for each in found if isinstance(each, int))


def _connected(
    rank: int, reached: set[int], axes: list[str], lines: Mapping[int, Timeline], world: int
) -> set[int]:
    """All ranks reached over any of the axes, from rank to rank (the others' last groups)."""
    found: set[int] = set()
    more = {rank, *reached}
    while found != more:
        found = more
        last = [lines[other] for other in found - {rank} if other in lines]
        groups = [
            _on_axis(line, axis, line.seqs[-1], world)
            for line in last
            for axis in axes
            if line.seqs
        ]
        more = found.union(*groups)
    return found

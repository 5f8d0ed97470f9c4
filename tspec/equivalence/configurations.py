"""The comparisons of an equivalence: which settings each side has, as `sweep`, `require`, `equal when` and `cover` say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from tspec.layout.conditions import Value, is_true
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.sharding import LayoutDeclaration
from tspec.resolve.program.trials import EquivalenceDeclaration, Setting

Settings = Mapping[str, Value]
_TOGETHER = {"pairs": 2, "triples": 3}


@dataclass(frozen=True, slots=True)
class Configuration:
    """One comparison: the settings of its two sides. `swept` are the candidate's settings that come
    from sweeps.
    """

    swept: Settings
    reference: Settings
    candidate: Settings

    @property
    def unlike(self) -> Settings:
        """The swept settings of the reference that are not the candidate's."""
        has = self.reference
        return {
            name: has[name] for name, value in self.swept.items() if has.get(name, value) != value
        }


def configurations_of(declaration: EquivalenceDeclaration) -> tuple[Configuration, ...]:
    """The pairs of settings to compare, in the order of the sweeps; the last sweep changes fastest.

    A side that sets a swept setting keeps its own value. Without `reference`, each configuration is
    compared with the first earlier one that `equal when` calls equal. A configuration without such
    a one is a reference itself.
    """
    swept = [
        dict(zip([each.name for each in declaration.sweeps], values, strict=True))
        for values in product(*([one.value for one in each.values] for each in declaration.sweeps))
    ]
    layout, candidate = declaration.layout, _said(declaration.candidate)
    allowed = [
        each for each in swept if _holds(declaration.require, _known({**each, **candidate}, layout))
    ]
    found = [
        Configuration(each, {**other, **_said(declaration.reference)}, {**each, **candidate})
        for number, each in enumerate(allowed)
        for other in _others(declaration, allowed, number)
    ]
    if declaration.cover in _TOGETHER:
        found = _covering(found, _TOGETHER[declaration.cover])
    return tuple(found)


def _said(settings: Iterable[Setting] | None) -> Settings:
    return {each.name: each.value.value for each in settings or ()}


def _others(
    declaration: EquivalenceDeclaration, allowed: Sequence[Settings], number: int
) -> Iterator[Settings]:
    """The reference's swept settings for one allowed configuration of the candidate: one at most."""
    candidate = _said(declaration.candidate)
    mine = _known({**allowed[number], **candidate}, declaration.layout)
    is_given = declaration.reference is not None
    for other in allowed[number : number + 1] if is_given else allowed[:number]:
        its = _said(declaration.reference) if is_given else candidate
        theirs = _known({**other, **its}, declaration.layout)
        both = {
            f"{side}.{name}": value
            for side, known in (("reference", theirs), ("candidate", mine))
            for name, value in known.items()
        }
        if _holds(declaration.equal_when, both):
            yield other
            return


def _known(settings: Settings, layout: LayoutDeclaration | None) -> Settings:
    """All settings of a run with their values, including sizes of axes, flags and the number of
    ranks.
    """
    if layout is None:
        return settings
    axes = {name: settings.get(name, size) for name, size in layout.mesh.axes}
    world = prod(int(size) for size in axes.values())
    regrouped = {
        name: 1 if world == 1 else size for _, each in layout.mesh.regroups for name, size in each
    }
    flags = dict.fromkeys(layout.flags, False)
    return {**flags, "world_size": world, **regrouped, **axes, **settings}


def _holds(conditions: Iterable[Expr], known: Settings) -> bool:
    return all(is_true(each, known) for each in conditions)


def _covering(found: Sequence[Configuration], together: int) -> list[Configuration]:
    """A subset that covers each combination of `together` swept values that occurs in `found`.

    Greedy: repeatedly takes the configuration with the most combinations not covered yet.
    """
    parts = [
        frozenset(combinations(sorted(each.swept.items()), min(together, len(each.swept))))
        for each in found
    ]
    wanted = frozenset[tuple[tuple[str, Value], ...]]().union(*parts)
    chosen: set[int] = set()
    while wanted:
        best = max(range(len(found)), key=lambda number: len(wanted & parts[number]))
        chosen.add(best)
        wanted -= parts[best]
    return [found[number] for number in sorted(chosen)]

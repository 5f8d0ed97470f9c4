"""Checks a rank's first step against a layout: parameters, activations, and the sums that the
layout needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tspec.layout.sizes import Sizes
from tspec.preflight.experts import joined
from tspec.preflight.facts import RankFacts
from tspec.preflight.sums import Sums, gradients, inputs, products
from tspec.preflight.tensors import activations, lacking, parameters
from tspec.resolve.program.sharding import LayoutDeclaration


@dataclass(frozen=True, slots=True)
class Problem:
    """A parameter or module of a rank that is not as the layout says, or a sum that is missing or doubled."""

    rank: int
    name: str
    what: str


def problems(
    layout: LayoutDeclaration, sizes: Sizes, ranks: Sequence[RankFacts]
) -> tuple[Problem, ...]:
    """The deviations of each rank from the layout."""
    return tuple(
        Problem(facts.rank, name, what)
        for facts in ranks
        for name, what in _deviations(layout, sizes, facts)
    )


def _deviations(layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts) -> list[tuple[str, str]]:
    """Names of a rank's tensors and modules, each with what is not as the layout says."""
    whole = replace(facts, parameters=joined(facts.parameters))
    found = [*parameters(layout, sizes, whole), *lacking(layout, sizes, whole)]
    found += activations(layout, sizes, facts)
    if facts.updated:
        sums = Sums(layout, facts)
        found += gradients(layout, sizes, facts, sums)
        found += products(layout, sizes, facts, sums)
        found += inputs(layout, sizes, facts, sums, {name for name, _ in found})
    return found

"""Experts that are parameters of their own, where a layout has the experts of a layer as one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tspec.preflight.facts import TensorFacts


def joined(parameters: Sequence[TensorFacts]) -> tuple[TensorFacts, ...]:
    """The parameters, with the experts that the rank holds of a layer as one tensor."""
    of_layer: dict[str, list[TensorFacts]] = {}
    rest = []
    for each in parameters:
        if each.expert is None:
            rest.append(each)
        else:
            of_layer.setdefault(each.expert.all, []).append(each)
    return (*rest, *(_one(name, experts) for name, experts in of_layer.items()))


def _one(name: str, experts: Sequence[TensorFacts]) -> TensorFacts:
    """The first dimension is that of the experts, in the rank's order."""
    places = [(each, each.expert) for each in experts if each.expert is not None]
    [(first, place), *_] = places
    return replace(
        first,
        name=name,
        shape=(len(places), *first.shape),
        full=(place.count, *first.full),
        bytes=sum(each.bytes for each in experts),
        blocks=tuple(
            ((at.number, *offset), (1, *shape))
            for each, at in places
            for offset, shape in each.blocks
        ),
        expert=None,
    )


def placed_name(parameter: TensorFacts) -> str:
    """The name under which a layout has a place for a parameter."""
    return parameter.name if parameter.expert is None else parameter.expert.all

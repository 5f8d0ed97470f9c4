"""The placement of a tensor in a layout, and the stage that holds it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tspec.layout.conditions import is_true
from tspec.resolve.program.sharding import (
    Flat,
    LayoutDeclaration,
    Modules,
    Placement,
    Shape,
    Stage,
    TensorKind,
    fits,
)

CUT_AS: Mapping[TensorKind, TensorKind] = {
    "grad": "param",
    "state": "param",
    "input_grad": "input",
    "output_grad": "output",
}
"""Kinds that are cut like another kind, unless a place of their own says otherwise."""


def placement_of(
    layout: LayoutDeclaration, kind: TensorKind, name: str, known: Mapping[str, int]
) -> Placement | None:
    """The first place, from top to bottom, that fits a tensor and applies; None if none does.

    `known` has the sizes of axes and the flags that are on. A tied tensor without a place has that
    of the other name.
    """
    names = [name, *tied_to(layout, name)]
    kinds: list[TensorKind] = [kind]
    if kind in CUT_AS:
        kinds.append(CUT_AS[kind])
    for wanted in kinds:
        for each in names:
            for place in layout.placements:
                if (
                    place.kind == wanted
                    and fits(place.pattern, each)
                    and is_true(place.when, known)
                ):
                    return place
    return None


def tied_to(layout: LayoutDeclaration, name: str) -> Iterator[str]:
    """The other names of a tied tensor."""
    for tie in layout.ties:
        if name in (tie.left, tie.right):
            yield tie.right if name == tie.left else tie.left


def flattened_from(layout: LayoutDeclaration, place: Placement) -> tuple[Placement | None, ...]:
    """The placements of the parameters that a flat placement flattens; (None,) for any other placement."""
    if not isinstance(place.shape, Flat):
        return (None,)
    before = layout.placements[: layout.placements.index(place)]
    earlier = [
        each
        for each in before
        if each.kind == place.kind and (each.when is None or each.when == place.when)
    ]
    return tuple(
        each
        for each in layout.placements
        if each.kind == CUT_AS.get(place.kind) and isinstance(each.shape, Shape)
        if fits(place.pattern, each.pattern) or fits(each.pattern, place.pattern)
        if not any(fits(other.pattern, each.pattern) for other in earlier)
    )


# --- stages -------------------------------------------------------------------------------------


def stages_of(layout: LayoutDeclaration, name: str) -> tuple[Stage, ...]:
    """The stages that hold the module of a tensor."""
    return tuple(
        stage for stage in layout.stages if any(_has(each, name) for each in stage.modules)
    )


def modules(named: Modules) -> Iterator[str]:
    """The modules that one text of a stage stands for."""
    if named.numbers is None:
        yield named.prefix
        return
    first, last = named.numbers
    for number in range(first, last + 1):
        yield f"{named.prefix}{number}{named.suffix}"


def _has(named: Modules, name: str) -> bool:
    """True if a tensor belongs to one of the modules."""
    if not name.startswith(named.prefix):
        return False
    rest = name[len(named.prefix) :]
    if named.numbers is not None:
        first, last = named.numbers
        number = re.match(r"0|[1-9]\d*", rest)
        if number is None or not first <= int(number[0]) <= last:
            return False
        rest = rest[number.end() :]
        if not rest.startswith(named.suffix):
            return False
        rest = rest[len(named.suffix) :]
    return not rest or rest.startswith((".", "["))  # an argument of it


def on_a_stage(layout: LayoutDeclaration, pattern: str) -> bool:
    """True if some stage has a module whose tensor may match a pattern."""
    head, star, _ = pattern.partition("*")
    if stages_of(layout, pattern):
        return True
    named = (each for stage in layout.stages for each in stage.modules)
    return bool(star) and any(
        each.prefix.startswith(head) or (each.numbers is not None and _begins(each, head))
        for each in named
    )


def _begins(named: Modules, head: str) -> bool:
    """True if the name of a numbered module may begin with `head`."""
    return head.startswith(named.prefix) and head[len(named.prefix) :].isdigit()


def names_of(layout: LayoutDeclaration, pattern: str) -> tuple[str, ...]:
    """The tensors that a pattern stands for, as far as stages show.

    The first `*` becomes the matching part of each module's name. A pattern that matches no module
    of a stage stands for itself.
    """
    head, star, tail = pattern.partition("*")
    if not star:
        return (pattern,)
    found = []
    for stage in layout.stages:
        for path in (path for each in stage.modules for path in modules(each)):
            rest = path[len(head) :]
            if head and path.startswith(head) and rest and "." not in rest:
                found.append(f"{head}{rest}{tail}")
    return tuple(found) or (pattern,)

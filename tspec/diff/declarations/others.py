"""Changes of layouts, meshes, sizes and trials: of the tensors that are cut differently, and of clauses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from tspec.diff.changes import ChangedPart, ChangeKind, DeclarationChange, DeclarationText
from tspec.diff.declarations import equivalences
from tspec.diff.sides.side import Side
from tspec.layout.differences import differences
from tspec.resolve.modules.files import Unit
from tspec.resolve.outline import canonical_lines, outline
from tspec.resolve.program.rules import LayoutDeclaration
from tspec.resolve.program.trials import EquivalenceDeclaration
from tspec.source import Span

What = Literal["layout", "mesh", "dims", "equivalence", "replay", "test"]
OTHERS: Mapping[str, What] = {what: what for what in get_args(What)}
Key = tuple[What, str, str]
"""Kind, module and name."""
Found = tuple[Unit, Span]
"""The file of a declaration, and its place there."""


def other_changes(old: Side, new: Side) -> tuple[list[DeclarationChange], int]:
    """The changed declarations other than rules, and the number of unchanged ones."""
    before, after = dict(_declared(old)), dict(_declared(new))
    _match_moved(before, after)
    changes: list[DeclarationChange] = []
    same = 0
    kind: ChangeKind
    for key in sorted({*before, *after}):
        first, second = before.get(key), after.get(key)
        written = (_written(old, first), _written(new, second))
        if first is None or second is None:
            kind = "added" if first is None else "removed"
            changes.append(DeclarationChange(key[0], _name(key), kind, *written))
            continue
        parts = tuple(_parts(key, (first, second), (old, new)))
        if not parts and written[0] and written[1] and written[0].text == written[1].text:
            same += 1
            continue
        kind = "equivalent" if key[0] == "layout" and not parts else "changed"
        if key[0] == "equivalence":
            kind = equivalences.relation(parts)
        changes.append(DeclarationChange(key[0], _name(key), kind, *written, parts=parts))
    return changes, same


def _declared(side: Side) -> Iterator[tuple[Key, Found]]:
    for unit in side.units:
        if not unit.asked:
            continue
        for each in outline(unit).declarations:
            what = OTHERS.get(each.kind)
            if what is not None:
                yield (what, unit.name, each.name.text), (unit, each.span)


def _match_moved(before: dict[Key, Found], after: dict[Key, Found]) -> None:
    """Pair declarations that moved to another module, if the name is unique."""
    lost, come = before.keys() - after.keys(), after.keys() - before.keys()
    for old in sorted(lost):
        alike = [new for new in come if (new[0], new[2]) == (old[0], old[2])]
        others = [each for each in lost if (each[0], each[2]) == (old[0], old[2])]
        if len(alike) == 1 and len(others) == 1:
            before[alike[0]] = before.pop(old)


def _name(key: Key) -> str:
    return f"{key[1]}.{key[2]}" if key[1] and key[0] != "test" else key[2]


def _written(side: Side, found: Found | None) -> DeclarationText | None:
    if found is None:
        return None
    unit, span = found
    return side.written(unit.source, span)


def _parts(key: Key, pair: tuple[Found, Found], sides: tuple[Side, Side]) -> Iterator[ChangedPart]:
    if key[0] == "layout":
        yield from _of_layout(key[2], pair, sides)
    elif key[0] == "equivalence":
        old, new = (
            _equivalence(side, key, unit) for side, (unit, _) in zip(sides, pair, strict=True)
        )
        before, after = (_lines(unit, span) for unit, span in pair)
        yield from equivalences.changed_clauses(old, new, (before, after))
    elif key[0] in ("mesh", "dims"):
        before, after = (_lines(unit, span) for unit, span in pair)
        part: Literal["mesh", "sizes"] = "mesh" if key[0] == "mesh" else "sizes"
        for name in dict.fromkeys([*before, *after]):
            first, second = (lines.get(name, "") for lines in (before, after))
            if first != second:
                yield ChangedPart(part, "changed", first, second)


def _lines(unit: Unit, span: Span) -> dict[str, str]:
    """The entries or clauses of a declaration as they are written, by their keys."""
    return {key: text for key, (text, _) in canonical_lines(unit, span).items()}


def _equivalence(side: Side, key: Key, unit: Unit) -> EquivalenceDeclaration:
    return next(
        each
        for each in side.program.equivalences
        if each.name == key[2] and each.source.path == unit.source.path
    )


# --- layouts ------------------------------------------------------------------------------------


def _of_layout(
    name: str, pair: tuple[Found, Found], sides: tuple[Side, Side]
) -> Iterator[ChangedPart]:
    """Each place whose tensors are cut differently, by its own line, its order, or the size of an axis."""
    before, after = (canonical_lines(unit, span) for unit, span in pair)
    old, new = (_layout(side, name, unit) for side, (unit, _) in zip(sides, pair, strict=True))
    if old.mesh.name != new.mesh.name:
        yield ChangedPart("mesh", "changed", f"on {old.mesh.name}", f"on {new.mesh.name}")
    places = [_placed(lines, each) for lines, each in zip((before, after), (old, new), strict=True)]
    told = dict.fromkeys(
        (
            places[0][each.old.span] if each.old else "",
            places[1][each.new.span] if each.new else "",
        )
        for each in differences(old, new)
    )
    if old.replicated != new.replicated and any(first == second for first, second in told):
        said = [
            f"replicated {', '.join(each.replicated)}" if each.replicated else ""
            for each in (old, new)
        ]
        yield ChangedPart("replicas", "changed", *said)
    others = [
        {about: text for about, (text, _) in lines.items() if not about.startswith("place")}
        for lines in (before, after)
    ]
    for about in dict.fromkeys([*others[0], *others[1]]):
        told[others[0].get(about, ""), others[1].get(about, "")] = None
    for first, second in told:
        if first != second:
            change = "added" if not first else "removed" if not second else "changed"
            yield ChangedPart("place", change, first, second)
    both = {*places[0].values()}
    unchanged = {span: text for span, text in places[1].items() if text in both}
    yield from _of_axes(old, new, unchanged)


def _of_axes(
    old: LayoutDeclaration, new: LayoutDeclaration, written: dict[Span, str]
) -> Iterator[ChangedPart]:
    """Places that are written as before, and are cut over an axis of another size."""
    sizes = (old.mesh.all_axes, new.mesh.all_axes)
    for place in new.placements:
        text = written.get(place.span)
        axes = [axis for axis in sorted(place.cut_over) if sizes[0].get(axis) != sizes[1].get(axis)]
        if text is not None and axes:
            said = [
                f"{text}  ({', '.join(f'{axis} = {each.get(axis, 1)}' for axis in axes)})"
                for each in sizes
            ]
            yield ChangedPart("place", "changed", *said)


def _placed(lines: Mapping[str, tuple[str, Span]], layout: LayoutDeclaration) -> dict[Span, str]:
    """The text of each place of a layout."""
    spans = {place.span for place in layout.placements}
    return {span: text for text, span in lines.values() if span in spans}


def _layout(side: Side, name: str, unit: Unit) -> LayoutDeclaration:
    return next(
        each
        for each in side.program.layouts
        if each.name == name and each.source.path == unit.source.path
    )

"""Layouts, meshes, sizes and trials: what was added, removed or changed, and which tensors are cut differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from tspec.diff.changes import Change, Part, Written
from tspec.diff.sides.side import Side
from tspec.resolve.program.rules import LayoutDeclaration
from tspec.source import Source
from tspec.syntax import nodes
from tspec.syntax.format_declarations import declaration, entry
from tspec.syntax.printer import render

What = Literal["layout", "mesh", "dims", "equivalence", "replay", "test"]
OTHERS: Mapping[type, What] = {
    nodes.Layout: "layout",
    nodes.Mesh: "mesh",
    nodes.Dims: "dims",
    nodes.Equivalence: "equivalence",
    nodes.Replay: "replay",
    nodes.Test: "test",
}
Key = tuple[What, str, str]
"""What it is, its module, its name."""
Found = tuple[nodes.Node, Source]


def other_changes(old: Side, new: Side) -> tuple[list[Change], int]:
    """The changes of all that is no rule, and how many declarations say what they said."""
    before, after = dict(_declared(old)), dict(_declared(new))
    _match_moved(before, after)
    changes: list[Change] = []
    same = 0
    for key in sorted({*before, *after}):
        first, second = before.get(key), after.get(key)
        written = (_written(old, first), _written(new, second))
        if first is None or second is None:
            kind: Literal["added", "removed"] = "added" if first is None else "removed"
            changes.append(Change(key[0], _name(key), kind, *written))
            continue
        parts = tuple(_parts(key, (first[0], second[0]), (old, new)))
        if not parts and written[0] and written[1] and written[0].text == written[1].text:
            same += 1
            continue
        changes.append(Change(key[0], _name(key), "changed", *written, parts=parts))
    return changes, same


def _declared(side: Side) -> Iterator[tuple[Key, Found]]:
    for unit in side.units:
        if not unit.asked:
            continue
        for node in unit.file.declarations:
            what = OTHERS.get(type(node))
            if what is not None:
                title = node.title.value if isinstance(node, nodes.Test) else node.name.text  # type: ignore[attr-defined]
                yield (what, unit.name, title), (node, unit.source)


def _match_moved(before: dict[Key, Found], after: dict[Key, Found]) -> None:
    """What stands in another module now is found by its name, if only one is called so."""
    lost, come = before.keys() - after.keys(), after.keys() - before.keys()
    for old in sorted(lost):
        alike = [new for new in come if (new[0], new[2]) == (old[0], old[2])]
        others = [each for each in lost if (each[0], each[2]) == (old[0], old[2])]
        if len(alike) == 1 and len(others) == 1:
            before[alike[0]] = before.pop(old)


def _name(key: Key) -> str:
    return f"{key[1]}.{key[2]}" if key[1] and key[0] != "test" else key[2]


def _written(side: Side, found: Found | None) -> Written | None:
    if found is None:
        return None
    return side.written(found[0], found[1], found[0].span)


def _parts(
    key: Key, pair: tuple[nodes.Node, nodes.Node], sides: tuple[Side, Side]
) -> Iterator[Part]:
    if key[0] == "layout":
        assert isinstance(pair[0], nodes.Layout) and isinstance(pair[1], nodes.Layout)
        yield from _of_layout(key, pair[0], pair[1], sides)
    elif key[0] in ("mesh", "dims"):
        before, after = ({_entry(e): _line(e) for e in _entries(node)} for node in pair)
        part: Literal["mesh", "sizes"] = "mesh" if key[0] == "mesh" else "sizes"
        for name in dict.fromkeys([*before, *after]):
            if before.get(name) != after.get(name):
                yield Part(part, "changed", before.get(name, ""), after.get(name, ""))


def _entries(node: nodes.Node) -> tuple[nodes.Entry | nodes.Regroup, ...]:
    entries: tuple[nodes.Entry | nodes.Regroup, ...] = getattr(node, "entries", ())
    return (*entries, *getattr(node, "regroups", ()))


def _entry(node: nodes.Entry | nodes.Regroup) -> str:
    return node.key.text if isinstance(node, nodes.Entry) else f"regroup {node.name.text}"


def _line(node: nodes.Entry | nodes.Regroup) -> str:
    if isinstance(node, nodes.Entry):
        return render(entry(node), 1000)
    inside = ", ".join(_line(each) for each in node.entries)
    return f"regroup {node.name.text} {{ {inside} }}"


# --- layouts ------------------------------------------------------------------------------------


def _of_layout(
    key: Key, old: nodes.Layout, new: nodes.Layout, sides: tuple[Side, Side]
) -> Iterator[Part]:
    """Each tensor that is cut differently, by its own line or by the size of an axis."""
    before, after = _lines(old), _lines(new)
    layouts = [_layout(side, new.name.text) for side in sides]
    sizes = [_axes(layout) for layout in layouts]
    if old.mesh.text != new.mesh.text:
        yield Part("mesh", "changed", f"on {old.mesh.text}", f"on {new.mesh.text}")
    for name in dict.fromkeys([*before, *after]):
        first, second = before.get(name, ""), after.get(name, "")
        if first != second:
            change = "added" if not first else "removed" if not second else "changed"
            yield Part("place", change, first, second)
            continue
        cut = _cut_over(layouts[1], new, name)
        axes = [axis for axis in sorted(cut) if sizes[0].get(axis) != sizes[1].get(axis)]
        if axes:
            said = [
                f"{first}  ({', '.join(f'{axis} = {each.get(axis, 1)}' for axis in axes)})"
                for each in sizes
            ]
            yield Part("place", "changed", *said)


def _layout(side: Side, name: str) -> LayoutDeclaration | None:
    return next((each for each in side.program.layouts if each.name == name), None)


def _axes(layout: LayoutDeclaration | None) -> dict[str, int]:
    return {} if layout is None else layout.mesh.all_axes


def _cut_over(layout: LayoutDeclaration | None, node: nodes.Layout, name: str) -> frozenset[str]:
    """The axes over which a tensor is cut or has to be added up."""
    clause = next(each for each in node.clauses if _clause_name(node, each) == name)
    found = () if layout is None else layout.placements
    return next((each.cut_over for each in found if each.span == clause.span), frozenset())


def _lines(layout: nodes.Layout) -> dict[str, str]:
    """The lines of a layout by the tensor that they are about, and under which condition."""
    found: dict[str, str] = {}
    for clause in layout.clauses:
        found[_clause_name(layout, clause)] = _clause_line(layout, clause)
    return found


def _clause_name(layout: nodes.Layout, clause: nodes.Place | nodes.Tied | nodes.Stage) -> str:
    match clause:
        case nodes.Place():
            when = _clause_line(layout, clause).partition(" when ")[2]
            return f"{clause.kind.text} {clause.pattern.value} {when}"
        case nodes.Tied():
            return f"tied {clause.left.value} {clause.right.value}"
        case nodes.Stage():
            return f"stage {clause.number} {clause.chunk}"


def _clause_line(layout: nodes.Layout, clause: nodes.Place | nodes.Tied | nodes.Stage) -> str:
    written = render(declaration(replace(layout, clauses=(clause,))), 1000)
    return " ".join(line.strip() for line in written.splitlines()[1:-1])
